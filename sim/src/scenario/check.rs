//! What can be wrong with a scenario that parses.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Callers, ClientProfile, Scenario, TimedChange, UpstreamProfile};
use crate::fault::ProxyFault;
use crate::profile::Behaviour;

/// More than a simulated run could hold.
const MOST_PROXIES: u32 = 10_000;
/// Likewise.
const MOST_ENDPOINTS: u32 = 10_000;

impl Scenario {
    /// Every error as `path: what is wrong`; empty for a valid scenario.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.duration < Duration::from_secs(1) {
            faults.push(format!(
                "duration: found {:?}, expected >= 1s",
                self.duration
            ));
        }
        if self.warmup >= self.duration {
            faults.push(format!(
                "warmup: found {:?}, expected < duration",
                self.warmup
            ));
        }
        if !(1..=64).contains(&self.workers) {
            faults.push(format!("workers: found {}, expected 1..=64", self.workers));
        }
        if !(1..=MOST_PROXIES).contains(&self.proxies) {
            faults.push(format!(
                "proxies: found {}, expected 1..={MOST_PROXIES}",
                self.proxies
            ));
        }
        faults.extend(self.callers.iter().flat_map(Callers::faults));
        if !(self.slo.quantile > 0.0 && self.slo.quantile < 1.0) {
            faults.push(format!(
                "slo.quantile: found {}, expected a number in (0, 1)",
                self.slo.quantile
            ));
        }
        if self.slo.latency.is_zero() {
            faults.push("slo.latency: found 0, expected > 0".to_owned());
        }
        if self.clients.is_empty() {
            faults.push("clients: found none, expected at least one".to_owned());
        }
        for (index, client) in self.clients.iter().enumerate() {
            self.client_faults(&format!("clients[{index}]"), client, &mut faults);
        }
        for (index, adversary) in self.adversaries.iter().enumerate() {
            faults.extend(adversary.faults(&format!("adversaries[{index}]"), self));
        }
        for (index, upstream) in self.upstreams.iter().enumerate() {
            let path = format!("upstreams[{index}]");
            upstream_faults(&path, upstream, &mut faults);
            faults.extend(self.faults_of_calls(&path, upstream));
        }
        for (index, mark) in self.marks.iter().enumerate() {
            if mark.at >= self.duration {
                faults.push(format!(
                    "marks[{index}].at: found {:?}, expected < duration",
                    mark.at
                ));
            }
        }
        for (index, incident) in self.incidents.iter().enumerate() {
            if incident.at >= self.duration {
                faults.push(format!(
                    "incidents[{index}].at: found {:?}, expected < duration",
                    incident.at
                ));
            }
            if let Some(proxy) = incident.proxy
                && proxy >= self.proxies
            {
                faults.push(format!(
                    "incidents[{index}].proxy: found {proxy}, expected < proxies"
                ));
            }
            if incident.what
                == (ProxyFault::PushObjective {
                    latency: Duration::ZERO,
                })
            {
                faults.push(format!("incidents[{index}].latency: found 0, expected > 0"));
            }
            if let ProxyFault::WorkerCrash { worker } | ProxyFault::WorkerLate { worker, .. } =
                incident.what
                && worker >= self.workers
            {
                faults.push(format!(
                    "incidents[{index}].worker: found {worker}, expected < workers"
                ));
            }
        }
        faults
    }

    fn client_faults(&self, path: &str, client: &ClientProfile, faults: &mut Vec<String>) {
        if self.upstream(&client.upstream).is_none() {
            faults.push(format!(
                "{path}.upstream: found {}, expected the name of an upstream",
                client.upstream
            ));
        }
        if client.deadline.is_zero() {
            faults.push(format!("{path}.deadline: found 0, expected > 0"));
        }
        if client.closed_loop.is_some() && self.callers.is_some() {
            faults.push(format!(
                "{path}.closed_loop: found one, expected none beside callers with an identity"
            ));
        }
        for (index, point) in client.load.iter().enumerate() {
            match (point.x, point.rps) {
                (Some(rate), None) | (None, Some(rate)) if rate.is_finite() && rate >= 0.0 => {}
                (Some(_), None) | (None, Some(_)) => {
                    faults.push(format!(
                        "{path}.load[{index}]: the rate must be a number >= 0"
                    ));
                }
                _ => faults.push(format!("{path}.load[{index}]: expected either x or rps")),
            }
        }
        if !client.load.is_sorted_by_key(|point| point.at) {
            faults.push(format!("{path}.load: expected points in order of time"));
        }
        if let Some(bursts) = client.bursts
            && (bursts.length.is_zero()
                || bursts.length > bursts.every
                || bursts.x.is_nan()
                || bursts.x < 0.0)
        {
            faults.push(format!(
                "{path}.bursts: expected 0 < length <= every and x >= 0"
            ));
        }
        share_faults(&format!("{path}.criticality"), &client.criticality, faults);
        share_faults(&format!("{path}.paths"), &client.paths, faults);
        let of_conduct = client.faults_of_conduct(self.slo.until);
        faults.extend(
            client
                .faults_of_loop()
                .into_iter()
                .chain(of_conduct)
                .map(|fault| format!("{path}.{fault}")),
        );
    }
}

fn share_faults(path: &str, shares: &BTreeMap<String, f64>, faults: &mut Vec<String>) {
    let sum: f64 = shares.values().sum();
    let in_range = shares.values().all(|share| (0.0..=1.0).contains(share));
    if !shares.is_empty() && (!in_range || (sum - 1.0).abs() > 1e-6) {
        faults.push(format!(
            "{path}: found shares with the sum {sum}, expected shares in 0..=1 with the sum 1"
        ));
    }
}

fn upstream_faults(path: &str, upstream: &UpstreamProfile, faults: &mut Vec<String>) {
    if !upstream.timeline.is_sorted_by_key(|change| change.at) {
        faults.push(format!(
            "{path}.timeline: expected changes in order of time"
        ));
    }
    let endpoints = upstream.max_endpoints();
    for (index, exception) in upstream.exceptions.iter().enumerate() {
        let path = format!("{path}.exceptions[{index}]");
        if exception.endpoint >= endpoints {
            faults.push(format!(
                "{path}.endpoint: found {}, expected < {endpoints}, the most endpoints there are",
                exception.endpoint
            ));
        }
        if !exception.timeline.is_sorted_by_key(|change| change.at) {
            faults.push(format!(
                "{path}.timeline: expected changes in order of time"
            ));
        }
        let leaves = |change: &TimedChange| change.change.endpoints.is_some();
        if exception.timeline.iter().any(leaves) {
            faults.push(format!(
                "{path}.timeline: endpoints: expected only in the upstream's own timeline"
            ));
        }
        for (at, behaviour) in upstream.stages_of(exception.endpoint) {
            behaviour_faults(&format!("{path} from {at:?}"), &behaviour, faults);
        }
    }
    for (at, behaviour) in upstream.stages() {
        behaviour_faults(&format!("{path} from {at:?}"), &behaviour, faults);
    }
}

fn behaviour_faults(path: &str, behaviour: &Behaviour, faults: &mut Vec<String>) {
    if behaviour.slots == 0 {
        faults.push(format!(
            "{path}: slots: found 0, expected > 0 (use mode to stop it)"
        ));
    }
    if !(1..=MOST_ENDPOINTS).contains(&behaviour.endpoints) {
        faults.push(format!(
            "{path}: endpoints: found {}, expected 1..={MOST_ENDPOINTS}",
            behaviour.endpoints
        ));
    }
    let laws = std::iter::once(&behaviour.service).chain(behaviour.paths.values());
    faults.extend(
        laws.filter_map(|law| law.fault())
            .map(|fault| format!("{path}: service: {fault}")),
    );
    let of_responses = behaviour.faults();
    faults.extend(
        of_responses
            .into_iter()
            .map(|fault| format!("{path}: {fault}")),
    );
    let shares = [
        behaviour.errors.map(|e| e.share),
        behaviour.delay.map(|d| d.share),
    ];
    for share in shares
        .into_iter()
        .flatten()
        .filter(|share| !(0.0..=1.0).contains(share))
    {
        faults.push(format!(
            "{path}: share: found {share}, expected a number in 0..=1"
        ));
    }
}
