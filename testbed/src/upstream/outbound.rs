//! The calls that a service makes to other services, through its proxy.
//!
//! The calls of a request are made as a scenario's callers make theirs: open connections, deadlines, retries. They begin
//! after the request's own work, step by step, and the request holds its slot meanwhile. Dropping them cancels them.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::header::HeaderMap;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::work_log;
use crate::client::Caller;
use crate::client::headers::CRITICALITY_HEADER;
use crate::client::scheduled::InnerRequest;
use tidegate_sim::policy::{COHORT_HEADER, DEADLINE_HEADER};
use tidegate_sim::record::Answer;
use tidegate_sim::scenario::{ClientProfile, LatencyUntil, PassedOn, Scenario, ServiceCall};

/// The calls that requests of a service make, and through which proxy.
#[derive(Debug)]
pub struct Outbound {
    calls: Vec<(ServiceCall, ClientProfile)>,
    passes: PassedOn,
    until: LatencyUntil,
    proxy: OnceLock<Caller>,
}

impl Outbound {
    /// The calls of the service `name` in a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario, name: &str) -> Self {
        let mut services = scenario.upstreams.iter().enumerate();
        let found = services.find(|(_, profile)| profile.name == name);
        let calls = found.iter().flat_map(|(index, profile)| {
            let inner = scenario.inner.iter();
            let own = inner.filter(move |client| client.service == *index);
            own.filter_map(|client| {
                let call = profile.calls.get(client.call)?;
                Some((call.clone(), client.profile.clone()))
            })
        });
        Self {
            calls: calls.collect(),
            passes: found.map(|(_, profile)| profile.passes).unwrap_or_default(),
            until: scenario.slo.until,
            proxy: OnceLock::new(),
        }
    }

    /// Sends calls to the proxy at `proxy` from now on. Only the first call of this method counts.
    pub fn connect(&self, proxy: SocketAddr) {
        self.proxy.get_or_init(|| Caller::http1(proxy));
    }

    /// Draws the calls of one request by their shares; `None` if there are none to make.
    pub(super) fn plan(&self, headers: &HeaderMap, rng: &mut StdRng) -> Option<PlannedCalls> {
        let caller = self.proxy.get()?.clone();
        let mut calls = self.calls.clone();
        calls.retain(|(call, _)| rng.random::<f64>() < call.share);
        if calls.is_empty() {
            return None;
        }
        let text = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        let left = text(DEADLINE_HEADER).and_then(|millis| millis.parse().ok());
        let left = left.filter(|_| self.passes.deadline);
        Some(PlannedCalls {
            calls,
            caller,
            passes: self.passes,
            until: self.until,
            cohort: text(COHORT_HEADER),
            origin: work_log::origin(headers),
            criticality: text(CRITICALITY_HEADER).filter(|_| self.passes.criticality),
            ends_at: left.map(|millis| Instant::now() + Duration::from_millis(millis)),
            seed: rng.random(),
        })
    }
}

/// The calls of one request.
#[derive(Debug)]
pub(super) struct PlannedCalls {
    calls: Vec<(ServiceCall, ClientProfile)>,
    caller: Caller,
    passes: PassedOn,
    until: LatencyUntil,
    cohort: Option<String>,
    origin: Option<u64>,
    criticality: Option<String>,
    /// When the request's own caller gives up, if the service heeds that.
    ends_at: Option<Instant>,
    seed: u64,
}

/// A call that the request needs has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DependencyFailed {
    /// Whether the answer says that a service is overloaded.
    pub(super) is_overload: bool,
}

impl PlannedCalls {
    /// Makes all calls. No step begins after a failure.
    pub(super) async fn make(self) -> Result<(), DependencyFailed> {
        let mut steps: Vec<u32> = self.calls.iter().map(|(call, _)| call.step).collect();
        steps.sort_unstable();
        steps.dedup();
        let this = Arc::new(self);
        for step in steps {
            if this.ends_at.is_some_and(|end| end <= Instant::now()) {
                return Err(DependencyFailed { is_overload: false });
            }
            let mut under_way = JoinSet::new();
            let calls = this.calls.iter().enumerate();
            for (index, _) in calls.filter(|(_, (call, _))| call.step == step) {
                let this = Arc::clone(&this);
                under_way.spawn(async move { this.make_one(index).await });
            }
            let mut failure = None;
            while let Some(end) = under_way.join_next().await {
                if let Ok(Err(failed)) = end {
                    failure = Some(failed);
                }
            }
            if let Some(failed) = failure {
                return Err(failed);
            }
        }
        Ok(())
    }

    async fn make_one(&self, index: usize) -> Result<(), DependencyFailed> {
        let Some((call, profile)) = self.calls.get(index) else {
            return Ok(());
        };
        let left = self
            .ends_at
            .map(|end| end.saturating_duration_since(Instant::now()));
        let number = u64::try_from(index).unwrap_or(u64::MAX);
        let request = InnerRequest {
            caller: self.caller.clone(),
            client: ClientProfile {
                deadline: left.map_or(profile.deadline, |left| left.min(profile.deadline)),
                ..profile.clone()
            },
            criticality: self.criticality.clone(),
            cohort: self.cohort.clone(),
            origin: self.origin,
            until: self.until,
            ends_at: self.ends_at,
        };
        let rng = StdRng::seed_from_u64(self.seed ^ number);
        let (answer, is_overload) = request.run(rng).await;
        if answer == Answer::Ok || call.optional {
            return Ok(());
        }
        let is_overload = is_overload && self.passes.sheds;
        Err(DependencyFailed { is_overload })
    }
}
