//! Which policies all proxies reject that have answered.

use std::collections::{BTreeMap, BTreeSet};

use super::ProxyFleet;
use crate::fleet::record::ProxyRecord;
use crate::policy::PolicyName;
use crate::render::ConfigVersion;

/// A policy in force whose configuration is rejected, and that no proxy runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedPolicy {
    /// The version of the rejected configuration.
    pub version: ConfigVersion,
    /// How many proxies reject it.
    pub proxies: usize,
    /// What the first of them says, by its id.
    pub message: String,
}

impl ProxyFleet {
    /// The policies that at least one proxy rejects, and none has acknowledged.
    #[must_use]
    pub fn rejected(&self) -> BTreeMap<PolicyName, RejectedPolicy> {
        let inner = self.lock();
        let mut streams: BTreeMap<&str, Vec<&ProxyRecord>> = BTreeMap::new();
        for stream in inner.streams.values() {
            if let Some(policy) = stream.record.policy.as_deref() {
                streams.entry(policy).or_default().push(&stream.record);
            }
        }
        let rejected = |name: &PolicyName| {
            let records = streams.get(name.to_string().as_str())?;
            if records.iter().any(|record| record.runs_wanted()) {
                return None;
            }
            let mut said: Vec<(&str, &str)> = records
                .iter()
                .filter_map(|record| Some((record.id.as_str(), record.rejection()?)))
                .collect();
            said.sort_unstable();
            let ids: BTreeSet<&str> = said.iter().map(|(id, _)| *id).collect();
            let policy = RejectedPolicy {
                version: inner.renderer.config(name)?.version.clone(),
                proxies: ids.len(),
                message: said.first()?.1.to_owned(),
            };
            Some((name.clone(), policy))
        };
        let names = inner.renderer.policies().iter().map(|policy| policy.name());
        names.filter_map(rejected).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::event::EventSink;
    use crate::fleet::{DiscoveryApi, StreamOrigin, StreamSeat};
    use crate::policy::{ProxyNode, gather};
    use crate::xds::{Module, Name, NativeModule, PluginTemplate, PushReply, Rejection};

    const POLICY: &str = "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {name: edge}
spec:
  proxies: [{id: 'edge-*'}]
  slo: {latency: {quantile: 0.99, target: 300ms}}
";

    fn fleet() -> ProxyFleet {
        let plugin = PluginTemplate::usual(
            Module::File("/tidegate.wasm".to_owned()),
            NativeModule::Named("tidegate".to_owned()),
        );
        let fleet = ProxyFleet::new(plugin, EventSink::new(|_| {}));
        replace(&fleet, POLICY);
        fleet
    }

    fn replace(fleet: &ProxyFleet, text: &str) {
        let gathered = gather([("edge.yaml", text.as_bytes())]);
        assert_eq!(gathered.problems, []);
        fleet.replace(&gathered.policies, false);
    }

    fn connect(fleet: &ProxyFleet, id: &str) -> StreamSeat {
        let node = ProxyNode {
            id: id.to_owned(),
            ..ProxyNode::default()
        };
        let origin = StreamOrigin {
            api: DiscoveryApi::Ecds,
            dialect: "sotw",
            peer: String::new(),
        };
        StreamSeat::take(fleet, node, origin)
    }

    fn wanted(seat: &mut StreamSeat) -> (Name, crate::xds::ResourceVersion) {
        let desired = seat.desired();
        let resource = desired.iter().next().unwrap();
        (resource.name.clone(), resource.version.clone())
    }

    fn reject(seat: &mut StreamSeat, message: &str) {
        let (name, version) = wanted(seat);
        let reply = PushReply::Rejected(
            vec![(name.clone(), Some(version))],
            Rejection::new(3, message),
        );
        seat.record(&reply, |one| *one == *name, |_| None);
    }

    fn accept(seat: &mut StreamSeat) {
        let (name, version) = wanted(seat);
        let reply = PushReply::Accepted(vec![(name.clone(), Some(version.clone()))]);
        seat.record(&reply, |one| *one == *name, |_| Some(&version));
    }

    fn said(fleet: &ProxyFleet) -> Vec<(usize, String)> {
        let rejected = fleet.rejected().into_values();
        rejected.map(|one| (one.proxies, one.message)).collect()
    }

    #[test]
    fn a_policy_is_rejected_while_no_proxy_has_acknowledged_it() {
        let fleet = fleet();
        let (mut one, mut two) = (connect(&fleet, "edge-1"), connect(&fleet, "edge-2"));
        assert_eq!(said(&fleet), [], "no proxy has answered");

        reject(&mut two, "second");
        assert_eq!(said(&fleet), [(1, "second".to_owned())]);
        reject(&mut one, "first");
        assert_eq!(said(&fleet), [(2, "first".to_owned())]);

        accept(&mut one);
        assert_eq!(said(&fleet), [], "one proxy runs it");
    }

    #[test]
    fn a_rejection_counts_only_for_the_version_that_was_rejected() {
        let fleet = fleet();
        let mut proxy = connect(&fleet, "edge-1");
        reject(&mut proxy, "no");
        assert_eq!(said(&fleet), [(1, "no".to_owned())]);

        replace(&fleet, &POLICY.replace("300ms", "200ms"));
        assert_eq!(said(&fleet), [], "the new version has no answer yet");
    }
}
