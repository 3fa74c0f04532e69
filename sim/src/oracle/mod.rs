//! The oracle: the result that a run could have if the capacity were known.
//!
//! The oracle takes the arrivals as they were and the behavior of the upstream
//! over time, and runs a fluid server: work drains at the rate of the slots, in
//! order of arrival. It admits a request if and only if its answer still comes
//! within the objective's latency. Failures that do not depend on load hit the
//! oracle as well: they reduce what an admitted request is worth. While the
//! upstream is down, nothing is admitted.
//!
//! Where bodies hold slots for seconds, a fluid server is too optimistic: a slot is
//! either taken or free. There each slot is a server of its own (`slots`). With
//! contention the oracle uses the number of slots that serves the most. While an
//! endpoint pauses, nothing drains.
//!
//! Each endpoint of an upstream is such a server, and arrivals go to them in turn: the
//! oracle chooses what to admit, not where to send it. It does not distinguish classes
//! of requests: all wait as long as the class that can wait the least, and no longer
//! than the endpoint's connections and backlog allow.
//!
//! Some requests have no value and cost nothing: those for a path that fails or lies,
//! those beyond a quota, and those with an upload that never ends. Where no answer for
//! a path can meet the objective at any load, each answer 200 before the caller's
//! deadline counts as good: shedding could not help there.
//!
//! An adversary is served like any caller: its requests take their part of the capacity if the service works for them.
//! They do not count in the score. Beyond the capacity the other callers get their fair share.
//!
//! Where services call services, the oracle sheds at the entry: it admits what the bottleneck of the chain can serve in time
//! (`chain`).
//!
//! Where the objective changes, each request has the one that was in force when it arrived.
//!
//! The arrivals of callers in a closed loop are those of the run itself, because they depend on its answers. A contender that
//! lets callers wait, or that sheds them, changes what the oracle is asked as well: callers that wait do not send, and refused
//! ones send again soon. So scores there compare what was made of different arrivals; goodput, sheds and latency have to be
//! read beside them.
//!
//! Edges: retries are not in the list (the oracle's callers need none); the
//! spread of service times is not simulated, only the mean, so that a run may
//! reach slightly more or less than 1.0 of it.

mod chain;
mod demand;
mod fluid;
mod request;
mod server;
mod slots;
mod verdict;

use crate::arrivals::Arrival;
use crate::scenario::{Scenario, TokenBucket};
use request::OracleRequest;
use server::Server;

pub use verdict::OracleVerdict;

/// Judges every arrival of a scenario; the verdicts are in the order of `arrivals`.
#[must_use]
pub fn judge(scenario: &Scenario, arrivals: &[Arrival]) -> Vec<OracleVerdict> {
    if scenario.has_chains() {
        return chain::judge(scenario, arrivals);
    }
    let mut servers: Vec<Server<'_>> = scenario
        .upstreams
        .iter()
        .map(|profile| Server::new(profile, scenario))
        .collect();
    let quotas = scenario.clients.iter();
    let mut quotas: Vec<Option<TokenBucket>> = quotas
        .map(|client| client.quota.map(|quota| quota.bucket()))
        .collect();
    let mut verdicts = vec![OracleVerdict::WORTHLESS; arrivals.len()];
    // The service's work begins with the end of the upload.
    let begins = arrivals.iter().enumerate().filter_map(|(index, arrival)| {
        let upload = arrival.uploads_for()?;
        Some((arrival.at + upload, index, arrival))
    });
    let mut begins: Vec<_> = begins.collect();
    begins.sort_by_key(|(at, index, _)| (*at, *index));
    for (at, index, arrival) in begins {
        let client = scenario.clients.get(arrival.client);
        let server = client.and_then(|client| {
            let mut servers = servers.iter_mut();
            servers.find(|server| server.name() == client.upstream)
        });
        let verdict = match (client, server) {
            (Some(client), Some(server)) => {
                let quota = quotas.get_mut(arrival.client).and_then(Option::as_mut);
                server.judge(
                    &OracleRequest {
                        at,
                        arrival,
                        client,
                    },
                    quota,
                )
            }
            _ => OracleVerdict::NOTHING,
        };
        if let Some(place) = verdicts.get_mut(index) {
            *place = verdict;
        }
    }
    verdicts
}

/// Whether callers request a path whose answers cannot meet the first objective at any load.
#[must_use]
pub fn is_unreachable(scenario: &Scenario) -> bool {
    let objective = scenario.slo.latency;
    scenario.upstreams.iter().any(|profile| {
        let mut server = Server::new(profile, scenario);
        let clients = scenario.clients.iter();
        let clients = clients.filter(|client| client.adversary.is_none());
        let mut clients = clients.filter(|client| client.upstream == profile.name);
        clients.any(|client| {
            let is_plain = client.paths.is_empty() && server.is_unreachable("/", objective);
            is_plain
                || client
                    .paths
                    .keys()
                    .any(|path| server.is_unreachable(path, objective))
        })
    })
}

#[cfg(test)]
mod tests;
