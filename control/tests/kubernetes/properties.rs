//! Whatever happens, and in whatever order, the cluster converges to the state that its policies describe.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_control::kube::istio::{IstioApi, ServedApis};
use tidegate_control::kube::view::ObjectComparison;

use crate::cluster::{
    BOTH, GATEWAY, NAMESPACE, NONE, OLD, PROXIES, PlannedCluster, TWO, WEB, WEB_V2, policy,
};

/// An event in the cluster.
#[derive(Clone, Debug)]
enum Act {
    /// A policy is applied: its number, its targets and its mode. Some are invalid.
    Put(u8, usize, usize),
    Remove(u8),
    /// One of the service's objects is deleted by hand.
    Lose(usize),
    /// A field of such an object that the service owns is changed.
    Change(usize),
    /// A field that the service does not own is added to such an object.
    Add(usize),
    /// Another client creates an object with the name that a policy needs.
    Take(u8),
    /// Istio is upgraded, downgraded or removed.
    Serve(usize),
    /// The service starts again and has no state.
    Restart,
    /// The service carries out its plans.
    Settle,
}

const TARGETS: [&str; 7] = [WEB, WEB_V2, NAMESPACE, GATEWAY, TWO, PROXIES, "{}"];
const MODES: [&str; 3] = ["enforce", "observe", "unsound"];
const SERVED: [ServedApis; 3] = [BOTH, OLD, NONE];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..5_u8, 0..TARGETS.len(), 0..MODES.len()).prop_map(|(n, t, m)| Act::Put(n, t, m)),
        2 => (0..5_u8).prop_map(Act::Remove),
        1 => (0..8_usize).prop_map(Act::Lose),
        1 => (0..8_usize).prop_map(Act::Change),
        1 => (0..8_usize).prop_map(Act::Add),
        1 => (0..5_u8).prop_map(Act::Take),
        1 => (0..SERVED.len()).prop_map(Act::Serve),
        1 => Just(Act::Restart),
        3 => Just(Act::Settle),
    ]
}

/// Applies `act`, if it is possible.
fn happen(cluster: &mut PlannedCluster, act: &Act) {
    let nth = |cluster: &PlannedCluster, n: usize| {
        let ours = cluster.objects.iter();
        let mut ours = ours.filter(|(_, object)| object["metadata"]["ownerReferences"].is_array());
        ours.nth(n).map(|(key, _)| key.clone())
    };
    match act {
        Act::Put(n, targets, mode) => {
            let mut policy = policy(&format!("p{n}"), TARGETS[*targets]);
            policy["spec"]["mode"] = json!(MODES[*mode]);
            cluster.put(policy);
        }
        Act::Remove(n) if cluster.has(&format!("p{n}")) => cluster.remove(&format!("p{n}")),
        Act::Remove(_) => {}
        Act::Lose(n) => {
            if let Some(key) = nth(cluster, *n) {
                cluster.lose(&key);
            }
        }
        Act::Change(n) => {
            if let Some(key) = nth(cluster, *n) {
                cluster.meddle(&key, |object| object["spec"]["priority"] = json!(-7));
            }
        }
        Act::Add(n) => {
            if let Some(key) = nth(cluster, *n) {
                cluster.meddle(&key, |object| object["spec"]["match"] = json!([]));
            }
        }
        Act::Take(n) => {
            let key = crate::cluster::key(IstioApi::TrafficExtension, &format!("tidegate-p{n}"));
            let is_served = cluster
                .view
                .discovered
                .is_some_and(|served| served.traffic_extension);
            if is_served && !cluster.objects.contains_key(&key) {
                cluster.meddle(&key, |object| object["spec"] = json!({"lua": {}}));
            }
        }
        Act::Serve(n) => cluster.serve(SERVED[*n]),
        Act::Restart => cluster.restart(),
        Act::Settle => {
            cluster.settle();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn plans_converge_and_the_status_is_true(acts in prop::collection::vec(act(), 1..40)) {
        let mut cluster = PlannedCluster::new(BOTH);
        let mut foreign: Vec<Value> = Vec::new();
        for act in &acts {
            happen(&mut cluster, act);
            let theirs = |object: &&Value| object["spec"].get("lua").is_some();
            foreign = cluster.objects.values().filter(theirs).cloned().collect();
        }

        // This panics if the cluster does not converge. After it there is nothing left to do.
        cluster.settle();
        prop_assert_eq!(cluster.settle(), (0, 0));

        let after: Vec<Value> = cluster.objects.values()
            .filter(|object| object["spec"].get("lua").is_some()).cloned().collect();
        prop_assert_eq!(after, foreign, "objects of other owners do not change");
        let served = cluster.view.discovered.unwrap();
        let api = served.chosen(cluster.settings.api);
        for policy in cluster.view.policies.values() {
            let condition = |kind: &str| {
                policy.status.conditions.iter().find(|c| c.type_ == kind).unwrap().clone()
            };
            prop_assert_eq!(policy.status.conditions.len(), 3);
            for condition in &policy.status.conditions {
                prop_assert_eq!(condition.observed_generation, Some(policy.generation));
            }
            prop_assert_eq!(condition("Accepted").status == "True", policy.errors.is_none());
            let objects: Vec<_> = cluster.view.objects.iter()
                .filter(|(_, seen)| seen.belongs_to(&policy.uid)).collect();
            if condition("Programmed").reason == "Programmed" {
                let valid = policy.valid.as_ref().unwrap();
                prop_assert!(!objects.is_empty());
                let lost = policy.status.overruled.iter().map(|o| o.target.clone()).collect();
                let desired = tidegate_control::kube::istio::desired_objects(
                    (valid, &tidegate_control::render::PluginConfig::of(valid)), policy.owner(), &lost, &cluster.settings.extension, api.unwrap(),
                );
                for desired in desired {
                    prop_assert_eq!(
                        cluster.view.objects[&desired.key].compare(&desired), ObjectComparison::Same
                    );
                }
            }
        }
        // Every object of this service has a policy. An object of the unused API exists only for a policy that has no
        // other object in force.
        for (key, seen) in cluster.view.objects.iter().filter(|(_, seen)| !seen.owners.is_empty()) {
            let owner = cluster.view.policies.values().find(|policy| seen.belongs_to(&policy.uid));
            prop_assert!(owner.is_some(), "{} has no owner", key);
            let is_invalid = owner.is_some_and(|policy| policy.valid.is_none());
            let is_blocked = owner.is_some_and(|policy| {
                policy.status.conditions.iter().any(|c| c.reason == "NameTaken")
            });
            prop_assert!(Some(key.api) == api || is_invalid || is_blocked, "{} is left over", key);
        }
    }

    #[test]
    fn two_replicas_plan_the_same(acts in prop::collection::vec(act(), 1..30)) {
        let mut cluster = PlannedCluster::new(BOTH);
        for act in &acts {
            happen(&mut cluster, act);
        }
        cluster.settle();
        // Only the first replica remembers the last valid versions of invalid policies.
        let all_sound = cluster.view.policies.values().all(|policy| policy.errors.is_none());
        let mut other = cluster.clone();
        other.restart();

        let plan = other.plan();

        prop_assert!(!all_sound || plan.writes.is_empty(), "the other replica writes no object: {:?}", plan);
        prop_assert!(!all_sound || plan.statuses.is_empty(), "and no status: {:?}", plan);
    }
}
