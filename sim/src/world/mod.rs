//! A discrete-event world in which a contender plays a scenario.
//!
//! The scenario defines callers in open and closed loops, with deadlines and retries, proxies with several workers, upstreams with slots,
//! queues, failures and several endpoints, and a network between them. Everything happens in events, ordered by time and
//! then by creation. All random numbers come from the scenario's seed. So a run is the same each time and everywhere, and
//! so is its [`crate::digest::Digest`].
//!
//! A request's way, each arrow a hop of the network:
//!
//! ```text
//! caller -> proxy: admit? -> upstream: backlog, upload, line, slot, body -> proxy: complete -> caller: retry?
//! ```
//!
//! A run keeps every request ([`play`]), or, where there are too many, a tally in their place: then the requests are drawn
//! one after the other, and the place of one that has ended is used again.
//!
//! A request is in flight at the proxy until the last byte of its response, or until one side goes away. The caller
//! waits for the moment that the objective names, no longer than its deadline, and reads what follows for as long as
//! it lasts or as it likes. A caller that gives up cancels at the proxy, which cancels at the upstream. Most upstreams
//! finish the work anyway, but send no response. Edges: bytes cost no bandwidth; connections are free where
//! the upstream does not limit them; the proxies themselves cost no time.

mod at_proxy;
mod at_upstream;
mod call;
mod caller;
mod chain;
mod clock;
mod closed_loop;
mod endpoint;
mod event;
mod ledger;
mod placement;
mod pool;
mod proxy;
mod queue;
mod reception;
mod report;
mod response;
mod run;
mod schedule;
mod source;
pub(crate) mod tally;
mod upstream;

use crate::contender::{ContenderError, Made};
use crate::kind::{ContenderKind, Make};
use crate::run::Run;
use crate::scenario::Scenario;

pub use clock::{SAMPLE_EVERY, START};
pub(crate) use report::Tallied;

/// Plays a scenario with a contender.
///
/// # Errors
/// When the contender cannot be made for this scenario.
pub fn play(scenario: &Scenario, kind: &ContenderKind) -> Result<Run, ContenderError> {
    match kind.make {
        Make::Published(make) | Make::Tuned(make) | Make::Inside(make) => {
            play_with(scenario, &make)
        }
        Make::Hindsight(search) => search(scenario),
    }
}

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The contender cannot be made for the scenario.
    #[error(transparent)]
    Contender(#[from] ContenderError),
    /// The run is too large.
    #[error(
        "the run of {contender} has more than {most_events} events: fewer retries, less load or a shorter run make less"
    )]
    TooManyEvents {
        /// Whose run.
        contender: &'static str,
        /// The most that was allowed.
        most_events: u64,
    },
}

/// As [`play`], but gives up after so many events. An event is a step of one request, about seven for each attempt, or a tick
/// of a proxy. A contender of hindsight plays many runs, none of which is bounded.
///
/// # Errors
/// When the run has more events, or the contender cannot be made for this scenario.
pub fn play_within(
    scenario: &Scenario,
    kind: &ContenderKind,
    most_events: u64,
) -> Result<Run, PlayError> {
    let make = match kind.make {
        Make::Published(make) | Make::Tuned(make) | Make::Inside(make) => make,
        Make::Hindsight(search) => return Ok(search(scenario)?),
    };
    let mut world = run::SimWorld::new(scenario, &make, None)?;
    if world.play_within(most_events) {
        Ok(world.into_run())
    } else {
        Err(PlayError::TooManyEvents {
            contender: kind.name,
            most_events,
        })
    }
}

/// Plays a scenario with the contenders that `make` makes from the scenario and a seed for each proxy.
pub(crate) fn play_with(
    scenario: &Scenario,
    make: &dyn Fn(&Scenario, u64) -> Made,
) -> Result<Run, ContenderError> {
    let mut world = run::SimWorld::new(scenario, make, None)?;
    world.play();
    Ok(world.into_run())
}

/// As [`play_with`], but keeps no request: only counts, latencies and levels by tenths of a second. So memory does not grow
/// with the length of the run.
pub(crate) fn tally_with(
    scenario: &Scenario,
    make: &dyn Fn(&Scenario, u64) -> Made,
) -> Result<Tallied, ContenderError> {
    let tally = tally::RunTally::new(scenario);
    let mut world = run::SimWorld::new(scenario, make, Some(tally))?;
    world.play();
    Ok(world.into_tallied())
}
