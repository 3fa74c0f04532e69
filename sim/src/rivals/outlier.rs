//! Envoy's outlier detection: an endpoint that fails five times in a row is left out for a while.
//!
//! It ejects hosts, it does not lower the load on a service: with a single host, ejecting it stops everything
//! until the ejection is over, whatever the service does by then.
//!
//! Rule: 5 failures in a row eject a host for 30 s x its number of ejections, at most 300 s. A look every 10 s returns hosts
//! whose time is over, and lowers the number by one for each host that stayed in. At most 10 % of the hosts are out, but one
//! always may be.
//!
//! Source: Envoy 1.40, `outlier_detection_impl.cc`,
//! <https://github.com/envoyproxy/envoy/blob/main/source/common/upstream/outlier_detection_impl.cc>, with
//! `always_eject_one_host` and `healthy_panic_threshold` 0: without them Envoy leaves a single host alone, and
//! sends to ejected ones when half are out. The testbed sets it likewise.
//!
//! Edges: counts are the process's, not a worker's. A caller that went away does not count. A host that is
//! out is not judged by answers, not even by those of requests that were on the way.

use std::time::Duration;

use tidegate_core::{BreakerPhase, Instant, Outcome};

use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made, Note};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "outlier",
    title: "Envoy outlier detection",
    make: Make::Published(make),
};

const CONSECUTIVE_5XX: u32 = 5;
const INTERVAL: Duration = Duration::from_secs(10);
const BASE_EJECTION: Duration = Duration::from_secs(30);
const MAX_EJECTION: Duration = Duration::from_secs(300);
/// Greatest share of hosts that may be out, in percent.
const MAX_EJECTION_PERCENT: usize = 10;

fn make(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(Outlier {
        upstreams: scenario.upstreams.iter().map(|_| Vec::new()).collect(),
        next_look: Instant::ZERO + INTERVAL,
        notes: Vec::new(),
    }))
}

/// One host.
#[derive(Debug, Clone, Copy, Default)]
struct OutlierHost {
    failures_in_a_row: u32,
    /// Ejections, less one for each look at which the host was in.
    ejections: u32,
    ejected_at: Option<Instant>,
}

struct Outlier {
    /// Hosts of each upstream, as far as they are known.
    upstreams: Vec<Vec<OutlierHost>>,
    next_look: Instant,
    notes: Vec<Note>,
}

/// Whether one more of `hosts` may be ejected.
fn may_eject(hosts: &[OutlierHost]) -> bool {
    let out = hosts
        .iter()
        .filter(|host| host.ejected_at.is_some())
        .count();
    out == 0 || (out + 1) * 100 <= MAX_EJECTION_PERCENT * hosts.len()
}

impl Outlier {
    /// Returns hosts whose ejection is over, if a look is due.
    fn look(&mut self, now: Instant) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + INTERVAL;
        for (upstream, hosts) in self.upstreams.iter_mut().enumerate() {
            for host in hosts.iter_mut() {
                let Some(since) = host.ejected_at else {
                    host.ejections = host.ejections.saturating_sub(1);
                    continue;
                };
                let time = (BASE_EJECTION * host.ejections).min(MAX_EJECTION);
                if now.saturating_since(since) >= time {
                    (host.ejected_at, host.failures_in_a_row) = (None, 0);
                    self.notes.push(note(upstream, BreakerPhase::Closed, now));
                }
            }
        }
    }
}

const fn note(upstream: usize, breaker: BreakerPhase, at: Instant) -> Note {
    Note {
        at,
        upstream,
        breaker,
        reason: "consecutive_5xx",
    }
}

impl Contender for Outlier {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        self.look(now);
        let Some(hosts) = self.upstreams.get_mut(ask.upstream) else {
            return Admission::Admit;
        };
        let count = usize::try_from(ask.endpoints).unwrap_or(usize::MAX);
        hosts.resize(count, OutlierHost::default());
        if hosts.iter().all(|host| host.ejected_at.is_some()) {
            Admission::shed("no_healthy_upstream")
        } else {
            Admission::Admit
        }
    }

    fn claim(&mut self, upstream: usize, endpoint: u32, _now: Instant) -> bool {
        let hosts = self.upstreams.get(upstream);
        let host = hosts.and_then(|hosts| hosts.get(usize::try_from(endpoint).ok()?));
        host.is_none_or(|host| host.ejected_at.is_none())
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        self.look(now);
        let is_failure = match done.outcome {
            Outcome::Success | Outcome::Ignored => false,
            Outcome::Failure(_) | Outcome::Overload { .. } => true,
            Outcome::Cancelled => return,
        };
        let Some(hosts) = self.upstreams.get_mut(done.upstream) else {
            return;
        };
        let may_eject = may_eject(hosts);
        let index = usize::try_from(done.endpoint).unwrap_or(usize::MAX);
        let Some(host) = hosts.get_mut(index).filter(|h| h.ejected_at.is_none()) else {
            return;
        };
        host.failures_in_a_row = if is_failure {
            host.failures_in_a_row + 1
        } else {
            0
        };
        if host.failures_in_a_row < CONSECUTIVE_5XX {
            return;
        }
        // Also if too many are ejected already: five more failures ask again, as in Envoy.
        host.failures_in_a_row = 0;
        if may_eject {
            host.ejections += 1;
            host.ejected_at = Some(now);
            self.notes
                .push(note(done.upstream, BreakerPhase::Open, now));
        }
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        let is_out = self
            .upstreams
            .get(upstream)
            .is_some_and(|hosts| !hosts.is_empty() && hosts.iter().all(|h| h.ejected_at.is_some()));
        ContenderView {
            limit: None,
            breaker: Some(if is_out {
                BreakerPhase::Open
            } else {
                BreakerPhase::Closed
            }),
        }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{FAILURE, at, done, first_ask, send};
    use super::*;

    fn outlier() -> Outlier {
        Outlier {
            upstreams: vec![Vec::new()],
            next_look: at(10_000),
            notes: Vec::new(),
        }
    }

    #[test]
    fn five_failures_in_a_row_eject_the_only_host_for_30_seconds() {
        let mut outlier = outlier();
        for _ in 0..4 {
            assert!(send(&mut outlier, FAILURE, 1_000));
        }
        assert!(
            send(&mut outlier, Outcome::Success, 1_000),
            "a success starts the count anew"
        );
        for _ in 0..5 {
            assert!(send(&mut outlier, FAILURE, 1_000));
        }
        assert!(!send(&mut outlier, Outcome::Success, 1_001));
        // 30 s are over at 31 s, and the next look is at 40 s.
        for second in [10, 20, 30, 39] {
            assert!(!send(&mut outlier, Outcome::Success, second * 1_000));
        }
        assert!(send(&mut outlier, Outcome::Success, 40_000));
    }

    #[test]
    fn callers_that_went_away_are_no_failures() {
        let mut outlier = outlier();
        for _ in 0..50 {
            assert!(send(&mut outlier, Outcome::Cancelled, 0));
        }
    }

    #[test]
    fn one_of_eight_may_be_out_and_no_second() {
        let mut outlier = outlier();
        let ask = Ask {
            endpoints: 8,
            ..first_ask()
        };
        assert_eq!(outlier.admit(&ask, at(0)), Admission::Admit);
        let fail = |outlier: &mut Outlier, endpoint, now| {
            for _ in 0..5 {
                let failure = Done {
                    endpoint,
                    ..done(FAILURE, 1)
                };
                outlier.complete(&failure, now);
            }
        };
        fail(&mut outlier, 3, at(0));
        fail(&mut outlier, 5, at(0));
        assert!(!outlier.claim(0, 3, at(0)));
        assert!(outlier.claim(0, 5, at(0)), "2 of 8 are more than 10 %");
        assert_eq!(outlier.admit(&ask, at(0)), Admission::Admit);
        fail(&mut outlier, 5, at(50_000));
        assert!(outlier.claim(0, 3, at(50_000)), "its time is over");
        assert!(!outlier.claim(0, 5, at(50_000)), "five more failures");
    }
}
