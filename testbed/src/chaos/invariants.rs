//! What must hold after every fault: pure checks of the observations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::fault::{InjectedFault, UpstreamSide};
use super::proxy::{Guards, Shown, ShownCounters};
use super::vital::Holds;
use super::world::HeldResources;

/// Observations of the undisturbed part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undisturbed {
    /// Lowest and highest limit, by upstream.
    pub limits: BTreeMap<UpstreamSide, (u64, u64)>,
    /// Resources that the processes held.
    pub held: HeldResources,
}

impl Undisturbed {
    /// Whether the resources that the processes hold now are within the bounds.
    #[must_use]
    pub fn bounds(&self, now: &HeldResources) -> bool {
        let then = &self.held;
        is_bounded(now.envoy, then.envoy) && is_bounded(now.control, then.control)
    }
}

/// The counters from one rest to the next, and what callers saw meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// At the rest before.
    pub before: ShownCounters,
    /// At the rest after.
    pub after: ShownCounters,
    /// What happened to the callers' requests.
    pub account: Account,
    /// Requests that the fault sent itself.
    pub calls: u64,
}

/// Observations of one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultFacts {
    /// The fault.
    pub fault: InjectedFault,
    /// From its beginning until it was undone, milliseconds.
    pub took_ms: u64,
    /// From then until the breakers were closed, the limits were back in their bands, and a second had passed without a
    /// request lost or shed, milliseconds; `None` if that did not happen within the bound.
    pub recovered_ms: Option<u64>,
    /// What the filter showed when the world had recovered, or when the bound was reached.
    pub guards: Guards,
    /// From the end of the last request at its caller until the filter had nothing in flight, milliseconds; `None` as above.
    pub rested_ms: Option<u64>,
    /// What Envoy showed at rest.
    pub shown: Shown,
    /// Resources that the processes held then.
    pub held: HeldResources,
    /// From the rest before to the one after.
    pub stretch: Stretch,
    /// An undisturbed stretch after that.
    pub proof: Stretch,
    /// Deviations from what the fault should have done.
    pub wrong: Vec<String>,
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// Its name.
    pub invariant: String,
    /// What was found and what was expected.
    pub found: String,
}

/// A limit may be lower than the lowest of the undisturbed part by this factor.
const BAND: u64 = 2;

/// No limit exceeds what an upstream answers within the objective of a second: 16 requests at a time, 25 ms each. Below that
/// the limit rises with every burst that is served in time, so a short undisturbed part says little about it.
const GREATEST_LIMIT: u64 = 640;

/// Envoy and the control service may hold this many file descriptors more than in the undisturbed part: some connections of a
/// burst close late.
const MORE_FDS: u64 = 64;

/// They may hold twice the memory of the undisturbed part, and this many bytes more. A VM that replaces a crashed one is
/// created before the old one's memory is freed.
const MORE_RESIDENT: u64 = 96 << 20;

/// Whether a limit is in its band; `undisturbed` is the lowest limit of the undisturbed part.
#[must_use]
pub const fn is_in_band(limit: u64, undisturbed: u64) -> bool {
    limit * BAND >= undisturbed && limit <= GREATEST_LIMIT
}

/// All invariants that do not hold.
#[must_use]
pub fn check(facts: &FaultFacts, undisturbed: &Undisturbed) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut claim = |invariant: &str, holds: bool, found: String| {
        if !holds {
            broken.push(Broken {
                invariant: invariant.to_owned(),
                found,
            });
        }
    };
    for wrong in &facts.wrong {
        claim("the fault is answered as it must be", false, wrong.clone());
    }
    for stretch in [&facts.stretch, &facts.proof] {
        let account = &stretch.account;
        for (invariant, found) in [
            (
                "every answer of an upstream reached its caller",
                &account.lost,
            ),
            ("no answer comes from nowhere", &account.phantoms),
            ("only what the fault hits fails", &account.unexpected),
        ] {
            claim(invariant, found.is_empty(), some_of(found));
        }
    }
    claim(
        "the world recovers within the bound",
        facts.recovered_ms.is_some(),
        format!("{:?}", facts.guards),
    );
    for (side, guard) in &facts.shown.guards {
        let name = side.name();
        claim(
            "in-flight returns to exactly 0",
            facts.rested_ms.is_some() && guard.in_flight == 0 && guard.streams == 0,
            format!(
                "{name}: {} in flight, {} streams",
                guard.in_flight, guard.streams
            ),
        );
    }
    for (side, guard) in &facts.guards {
        let name = side.name();
        claim(
            "breakers close",
            guard.breaker == 0,
            format!("{name}: state {}", guard.breaker),
        );
        let band = undisturbed.limits.get(side).copied().unwrap_or_default();
        claim(
            "the limit returns to its band",
            is_in_band(guard.limit, band.0),
            format!(
                "{name}: limit {}, undisturbed {} to {}",
                guard.limit, band.0, band.1
            ),
        );
    }
    for (who, now, then) in [
        ("envoy", facts.held.envoy, undisturbed.held.envoy),
        ("control", facts.held.control, undisturbed.held.control),
    ] {
        let found = format!("{who}: {now:?}, undisturbed {then:?}");
        claim(
            "file descriptors and memory stay bounded",
            is_bounded(now, then),
            found,
        );
    }
    let keeps = facts.fault.kind.keeps_counters();
    for (stretch, keeps) in [(&facts.stretch, keeps), (&facts.proof, true)] {
        let found = uneven(stretch, keeps).unwrap_or_default();
        claim("admitted + shed = arrived", found.is_empty(), found);
    }
    let proof = &facts.proof.account;
    claim(
        "after the fault all requests are answered",
        proof.sent > 0 && proof.sent == proof.answered,
        format!("{} sent, {} answered", proof.sent, proof.answered),
    );
    broken
}

fn is_bounded(now: Holds, then: Holds) -> bool {
    now.fds <= then.fds + MORE_FDS && now.resident <= 2 * then.resident + MORE_RESIDENT
}

/// How the counts differ; `None` if they do not.
fn uneven(stretch: &Stretch, keeps_counters: bool) -> Option<String> {
    if !keeps_counters {
        return None;
    }
    let account = &stretch.account;
    let counted = stretch.after.since(&stretch.before);
    let Some(counted) = counted else {
        return Some(format!(
            "counted down: {:?}, {:?}",
            stretch.before, stretch.after
        ));
    };
    let sent = account.sent + stretch.calls;
    // Requests without an answer may have been shed or admitted, and may not even have reached Envoy.
    let unheard = account.unheard;
    let is_even = counted.admitted + counted.shed == counted.asked
        && counted.asked == counted.arrived
        && (sent - unheard..=sent).contains(&counted.arrived)
        && (account.shed..=account.shed + unheard).contains(&counted.shed);
    (!is_even).then(|| format!("callers: {sent} sent, {} shed; {counted:?}", account.shed))
}

/// The first few, and how many there are.
fn some_of(found: &[String]) -> String {
    /// Enough to recognize the problem.
    const SHOWN: usize = 5;
    let first: Vec<&str> = found.iter().take(SHOWN).map(String::as_str).collect();
    format!("{}: {}", found.len(), first.join("; "))
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
