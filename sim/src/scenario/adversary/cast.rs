//! Turns an adversary into a client, and into a change of what its upstream does with its path.
//!
//! The defaults of each kind are here.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Adversary, AdversaryKind, Cut, Spells};
use crate::profile::{Body, Lie, ServiceTime};
use crate::scenario::{
    ClientProfile, LatencyUntil, LoadPoint, Quota, Retries, Scenario, Upload, UpstreamProfile,
};

/// What a service grants a caller beyond its quota, in requests a second, and the `retry-after` of its refusals, in seconds.
const GRANTED_RPS: f64 = 20.0;
const OVER_QUOTA_RETRY_AFTER: u32 = 3_600;
/// An agent that filters know as a health checker's.
const FORGED_AGENT: &str = "kube-probe/1.33";
/// A cohort at the low end of the plain hash: the least of three million that were tried.
const FORGED_COHORT: &str = "forged-2213234";
const FLOOD_COHORT: &str = "flood";
const FORGED_CRITICALITY: &str = "critical_plus";
const CRASHING_PATH: &str = "/crash";
const SLOW_PATH: &str = "/download";
const LYING_PATH: &str = "/lie";
/// How long callers stall, read slowly, or wait with a short deadline.
const STALLED: Duration = Duration::from_secs(30);
const SLOW_READ: Duration = Duration::from_secs(10);
const SHORT_DEADLINE: Duration = Duration::from_millis(5);
const RESET_AFTER: Duration = Duration::from_millis(1);
const ENDLESS_BACKOFF: Duration = Duration::from_millis(10);
/// The body that is read slowly: it takes this time for a caller that reads, and is larger than the buffers of sockets and
/// proxies.
const SLOW_BODY: Duration = Duration::from_millis(50);
const SLOW_BODY_BYTES: u32 = 32 << 20;

impl Scenario {
    /// The same with a client instead of each adversary; `adversaries` is empty then.
    #[must_use]
    pub fn cast(mut self) -> Self {
        for adversary in std::mem::take(&mut self.adversaries) {
            let client = adversary.client(self.slo.until, self.duration);
            let mut upstreams = self.upstreams.iter_mut();
            if let Some(upstream) = upstreams.find(|one| one.name == adversary.upstream) {
                adversary.prepare(upstream);
            }
            self.clients.push(client);
        }
        self.inner = self.inner_clients();
        self
    }
}

impl Adversary {
    fn client(&self, until: LatencyUntil, end: Duration) -> ClientProfile {
        let mut client = ClientProfile {
            upstream: self.upstream.clone(),
            adversary: Some(self.kind),
            ..ClientProfile::sending(self.load(end))
        };
        let after = |default: Duration| self.after.unwrap_or(default);
        match self.kind {
            AdversaryKind::OverQuota => {
                client.quota = Some(Quota {
                    rps: self.granted.unwrap_or(GRANTED_RPS),
                    status: self.status.unwrap_or(429),
                    retry_after: Some(self.retry_after.unwrap_or(OVER_QUOTA_RETRY_AFTER)),
                });
            }
            AdversaryKind::CrashingPath => client.paths = only(self.path(CRASHING_PATH)),
            AdversaryKind::ForgedAgent => {
                client.agent = Some(text(self.agent.as_ref(), FORGED_AGENT))
            }
            AdversaryKind::StalledUpload => {
                client.deadline = after(STALLED);
                client.upload = Some(Upload {
                    duration: ServiceTime::constant(Duration::from_secs(1)),
                    stalled: 1.0,
                });
            }
            AdversaryKind::SlowReader => {
                client.paths = only(self.path(SLOW_PATH));
                client.dawdles = Some(after(SLOW_READ));
                if until == LatencyUntil::End {
                    client.deadline = after(SLOW_READ);
                }
            }
            AdversaryKind::BulkReset => client.deadline = after(RESET_AFTER),
            AdversaryKind::ShortDeadline => match self.cut.unwrap_or_default() {
                Cut::Cancel => client.deadline = after(SHORT_DEADLINE),
                Cut::Header => client.timeout = Some(after(SHORT_DEADLINE)),
            },
            AdversaryKind::ForgedCriticality => {
                let class = text(self.criticality.as_ref(), FORGED_CRITICALITY);
                client.criticality = only(class);
            }
            AdversaryKind::ForgedCohort => {
                client.cohort = Some(text(self.cohort.as_ref(), FORGED_COHORT))
            }
            AdversaryKind::Flood => client.cohort = Some(text(self.cohort.as_ref(), FLOOD_COHORT)),
            AdversaryKind::EndlessRetries => {
                client.retries = Some(Retries {
                    max: u32::MAX,
                    backoff: self.backoff.unwrap_or(ENDLESS_BACKOFF),
                    steady: true,
                    stubborn: true,
                    untold: true,
                });
            }
            AdversaryKind::LyingUpstream => {
                client.paths = only(self.path(LYING_PATH));
                match (self.lie.unwrap_or_default(), until) {
                    (Lie::Silence, LatencyUntil::Headers) => {
                        client.reads_for = Some(ServiceTime::constant(after(STALLED)));
                    }
                    (Lie::Silence, _) => client.deadline = after(STALLED),
                    (Lie::RetryAfter { .. } | Lie::HugeHeaders { .. }, _) => {}
                }
            }
        }
        client
    }

    /// Changes what the upstream does with the adversary's path.
    fn prepare(&self, upstream: &mut UpstreamProfile) {
        let behaviour = &mut upstream.behaviour;
        match self.kind {
            AdversaryKind::CrashingPath => {
                let status = self.status.unwrap_or(500);
                behaviour.failing.insert(self.path(CRASHING_PATH), status);
            }
            AdversaryKind::SlowReader => {
                let body = Body {
                    duration: ServiceTime::constant(SLOW_BODY),
                    holds_slot: true,
                    bytes: SLOW_BODY_BYTES,
                };
                behaviour.bodies.insert(self.path(SLOW_PATH), body);
            }
            AdversaryKind::LyingUpstream => {
                let lie = self.lie.unwrap_or_default();
                behaviour.lies.insert(self.path(LYING_PATH), lie);
            }
            _ => {}
        }
    }

    /// The path that it asks for, where its kind has one of its own.
    pub(super) fn own_path(&self) -> Option<String> {
        match self.kind {
            AdversaryKind::CrashingPath => Some(self.path(CRASHING_PATH)),
            AdversaryKind::SlowReader => Some(self.path(SLOW_PATH)),
            AdversaryKind::LyingUpstream => Some(self.path(LYING_PATH)),
            _ => None,
        }
    }

    fn path(&self, default: &str) -> String {
        text(self.path.as_ref(), default)
    }

    /// Its rate from `start` to `stop`, or in spells between them; `end` is the end of the run.
    fn load(&self, end: Duration) -> Vec<LoadPoint> {
        let point = |at, x, rps| LoadPoint {
            at,
            x,
            rps,
            ramp: false,
        };
        let on = |at| point(at, self.x, self.rps);
        let off = |at| point(at, None, Some(0.0));
        let stop = self.stop.unwrap_or(end);
        let Some(Spells { every, length }) = self.spells else {
            let stop = self.stop.map(off);
            return std::iter::once(on(self.start)).chain(stop).collect();
        };
        let begins = (0..).map(|number| self.start + every * number);
        let begins = begins.take_while(|begin| *begin < stop);
        let spell = |begin| [on(begin), off(stop.min(begin + length))];
        begins.flat_map(spell).collect()
    }
}

fn only(key: String) -> BTreeMap<String, f64> {
    [(key, 1.0)].into()
}

fn text(given: Option<&String>, default: &str) -> String {
    given.cloned().unwrap_or_else(|| default.to_owned())
}
