//! Plans the writes of Istio's objects and of statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::object_state::{ObjectStates, REMOVAL};
use super::{ObjectWrite, StatusWrite, WritePlan};
use crate::kube::clock::ClockReading;
use crate::kube::istio::{IstioApi, ObjectKey, desired_objects};
use crate::kube::settings::KubeSettings;
use crate::kube::status::{ObjectState, ReconcileState, report};
use crate::kube::view::{ClusterView, ObservedObject, ObservedPolicy, WriteSubject};
use crate::policy::{CheckedPolicy, Contest, ContestExtent, Policies, PolicyName, contests};
use crate::render::PluginConfig;

/// What to write if Istio's `api` is used; `None`: the server has no API to use.
pub(super) fn plan(
    view: &ClusterView,
    settings: &KubeSettings,
    api: Option<IstioApi>,
    now: ClockReading,
) -> WritePlan {
    let mut planner = Planner {
        view,
        settings,
        now,
        api,
        objects: ObjectStates::new(view, now.instant),
        claimed: BTreeSet::new(),
        states: BTreeMap::new(),
        plan: WritePlan::default(),
    };
    planner.apply();
    planner.remove();
    planner.report();
    planner.plan.retry_at = planner.objects.retry_at();
    planner.plan
}

struct Planner<'a> {
    view: &'a ClusterView,
    settings: &'a KubeSettings,
    now: ClockReading,
    api: Option<IstioApi>,
    objects: ObjectStates<'a>,
    /// Every object that some policy needs.
    claimed: BTreeSet<ObjectKey>,
    /// The state of each policy, by its uid.
    states: BTreeMap<&'a str, (&'a ObservedPolicy, ReconcileState)>,
    plan: WritePlan,
}

impl Planner<'_> {
    /// Plans the objects that should exist.
    fn apply(&mut self) {
        let view = self.view;
        let mut lost: BTreeMap<PolicyName, Vec<Contest>> = BTreeMap::new();
        for contest in contests(&valid_policies(view)) {
            lost.entry(contest.loser.clone()).or_default().push(contest);
        }
        let mut policies: Vec<&ObservedPolicy> = view.policies.values().collect();
        // If two policies need an object of the same name, the older one gets it.
        policies.sort_by(|a, b| {
            let age = |policy: &&ObservedPolicy| policy.valid.as_ref().and_then(|p| p.created());
            (age(a).is_none(), age(a), &a.name).cmp(&(age(b).is_none(), age(b), &b.name))
        });
        for policy in policies {
            let contests = lost.remove(&policy.name).unwrap_or_default();
            let state = self.state(policy, contests);
            self.states.insert(&policy.uid, (policy, state));
        }
    }

    /// The state of a policy; plans the writes of its objects.
    fn state(&mut self, policy: &ObservedPolicy, contests: Vec<Contest>) -> ReconcileState {
        let proxies = &self.settings.proxies;
        let is_barred = policy
            .valid
            .as_ref()
            .is_some_and(|valid| proxies.bar(valid));
        let mut state = ReconcileState {
            api: self.api,
            barred: is_barred.then(|| policy.barred(proxies)),
            shutoff: self.view.shutoff.clone(),
            reach: self.view.reach.clone(),
            pools: self.view.pools.clone(),
            rejected: Arc::clone(&self.view.rejected),
            ..ReconcileState::default()
        };
        if let (Some(api), Some(valid)) = (self.api, &policy.valid) {
            let whole = |contest: &&Contest| contest.extent == ContestExtent::Whole;
            let lost = contests.iter().filter(whole);
            let lost: BTreeSet<String> = lost.map(|contest| contest.target.clone()).collect();
            let extension = match self.settings.extension.for_policy(valid) {
                Ok(extension) => extension,
                Err(problem) => {
                    state.module = Some(problem);
                    state.contests = contests;
                    return state;
                }
            };
            state.modules_differ = self.modules_differ(valid, &contests);
            let config = PluginConfig::under(valid, state.shutoff.is_off());
            for desired in desired_objects((valid, &config), policy.owner(), &lost, &extension, api)
            {
                let key = desired.key.clone();
                let object = if self.claimed.insert(key.clone()) {
                    self.objects.state(policy, &desired)
                } else {
                    ObjectState::Foreign
                };
                if object == ObjectState::Due {
                    state.is_due = true;
                    self.plan.writes.push(ObjectWrite::Apply(desired));
                }
                state.objects.push((key, object));
            }
        }
        state.contests = contests;
        state
    }

    /// Contests of `policy` with policies that get another version of the module, for parts of its targets: proxies there
    /// would run both versions.
    fn modules_differ(&self, policy: &CheckedPolicy, contests: &[Contest]) -> Vec<Contest> {
        let versions = &self.settings.extension.versions;
        let own = versions.name_for(policy);
        let differs = |contest: &&Contest| {
            let winner = self.view.policies.get(&contest.winner);
            let winner = winner.and_then(|winner| winner.valid.as_ref());
            contest.extent == ContestExtent::Part
                && winner.is_some_and(|winner| versions.name_for(winner) != own)
        };
        contests.iter().filter(differs).cloned().collect()
    }

    /// Plans the deletion of this service's objects that are no longer needed.
    fn remove(&mut self) {
        let view = self.view;
        for (key, seen) in &view.objects {
            for owner in &seen.owners {
                if let Some((_, state)) = self.states.get_mut(owner.as_str()) {
                    state.has_objects = true;
                }
            }
            let is_ours = seen.is_labelled && !seen.owners.is_empty();
            let is_claimed = self.claimed.contains(key) && !self.objects.is_orphaned(seen);
            if !is_ours || seen.is_leaving || is_claimed || self.is_needed(key, seen) {
                continue;
            }
            if self.objects.due(key, REMOVAL, Some(seen)) != ObjectState::Due {
                continue;
            }
            for (policy, state) in self.states.values_mut() {
                let needs_it = state.objects.iter().any(|(needed, _)| needed == key);
                state.is_due |= needs_it || seen.belongs_to(&policy.uid);
            }
            self.plan.writes.push(ObjectWrite::Delete {
                key: key.clone(),
                uid: seen.uid.clone(),
            });
        }
    }

    /// Whether this object keeps a policy in force, although no policy claims it.
    fn is_needed(&self, key: &ObjectKey, seen: &ObservedObject) -> bool {
        let mut owners = seen.owners.iter();
        owners.any(|owner| match self.states.get(owner.as_str()) {
            None => false,
            Some((policy, state)) if policy.valid.is_none() || state.module.is_some() => true,
            Some(_) if Some(key.api) == self.api => false,
            Some((_, state)) => {
                let is_current = |(_, object): &(_, ObjectState)| *object == ObjectState::Current;
                self.api.is_none() || !state.objects.iter().all(is_current)
            }
        })
    }

    /// Plans the statuses of policies whose objects need no write.
    fn report(&mut self) {
        let states = std::mem::take(&mut self.states);
        for (policy, state) in states.into_values() {
            let report = report(policy, &state);
            let news = report.status(policy.generation, &policy.status, self.now.wall);
            let Some((status, changes)) = news.filter(|_| !state.is_due) else {
                continue;
            };
            let subject = WriteSubject::Status(policy.name.clone());
            let failure = self.view.write_failures.get(&subject);
            if let Some(failure) = failure.filter(|failure| failure.retry_at > self.now.instant) {
                self.objects.wait_until(failure.retry_at);
                continue;
            }
            self.plan.statuses.push(StatusWrite {
                name: policy.name.clone(),
                uid: policy.uid.clone(),
                status,
                changes,
            });
        }
    }
}

fn valid_policies(view: &ClusterView) -> Policies {
    let mut valid = Policies::default();
    for policy in view.policies.values().filter_map(|p| p.valid.as_ref()) {
        valid.insert_shared(Arc::clone(policy));
    }
    valid
}
