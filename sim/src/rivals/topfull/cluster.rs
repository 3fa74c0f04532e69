//! APIs that share an overloaded service, and how a change of their rates is divided among them.

use std::collections::BTreeSet;

use tidegate_core::Instant;

use super::api::EntryApi;
use super::step::ClusterState;

/// A cluster ends after this many changes.
const MOST_CHANGES: u32 = 150;

/// APIs that are controlled together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ApiCluster {
    pub(super) apis: BTreeSet<usize>,
    pub(super) changes: u32,
}

impl ApiCluster {
    fn of<'a>(&self, apis: &'a [EntryApi]) -> impl Iterator<Item = &'a EntryApi> {
        self.apis.iter().filter_map(|place| apis.get(*place))
    }

    pub(super) fn state(&self, apis: &[EntryApi]) -> ClusterState {
        let rates: f64 = self.of(apis).map(EntryApi::rate).sum();
        let succeeded: f64 = self.of(apis).map(EntryApi::succeeded).sum();
        let latency = self.of(apis).map(EntryApi::latency).max();
        ClusterState {
            goodput: succeeded / rates.max(f64::MIN_POSITIVE),
            latency: latency.unwrap_or_default(),
        }
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self, apis: &[EntryApi]) -> bool {
        self.changes >= MOST_CHANGES || self.of(apis).all(EntryApi::is_well)
    }

    /// The APIs that pass no overloaded service any more, each as a cluster of its own.
    pub(super) fn split(&mut self, apis: &[EntryApi], overloaded: &BTreeSet<usize>) -> Vec<Self> {
        if self.apis.len() < 2 {
            return Vec::new();
        }
        let is_free = |place: &usize| {
            let api = apis.get(*place);
            api.is_some_and(|api| !overloaded.iter().any(|service| api.passes(*service)))
        };
        let (free, bound) = self.apis.iter().copied().partition(is_free);
        self.apis = bound;
        let alone = |place| Self {
            apis: BTreeSet::from([place]),
            changes: 0,
        };
        BTreeSet::into_iter(free).map(alone).collect()
    }
}

/// Changes the rates of some APIs by `change` times the rates of the first group. The part for which a group has no room goes
/// to the next one.
pub(super) fn change_rates(
    apis: &mut [EntryApi],
    chosen: &BTreeSet<usize>,
    overloaded: &BTreeSet<usize>,
    (change, now): (f64, Instant),
) {
    let mut groups = groups(apis, chosen, overloaded);
    if change > 0.0 {
        groups.reverse();
    }
    let first = groups.first().into_iter().flatten();
    let rates: f64 = first
        .filter_map(|place| apis.get(*place))
        .map(EntryApi::rate)
        .sum();
    let mut left = change * rates;
    for group in groups {
        let mut open = u32::try_from(group.len()).unwrap_or(u32::MAX);
        for place in group {
            let share = left / f64::from(open.max(1));
            if let Some(api) = apis.get_mut(place) {
                left += api.change(share, now) - share;
            }
            open = open.saturating_sub(1);
        }
    }
}

/// Groups of APIs by how many APIs use the least used overloaded service that they pass, the smallest number first.
fn groups(
    apis: &[EntryApi],
    chosen: &BTreeSet<usize>,
    overloaded: &BTreeSet<usize>,
) -> Vec<Vec<usize>> {
    let use_of = |service: usize| apis.iter().filter(|api| api.passes(service)).count();
    let rank = |place: &usize| {
        let api = apis.get(*place)?;
        let passed = overloaded.iter().filter(|service| api.passes(**service));
        passed.map(|service| use_of(*service)).min()
    };
    let mut ranked: Vec<(usize, usize)> = chosen
        .iter()
        .map(|place| (rank(place).unwrap_or(usize::MAX), *place))
        .collect();
    ranked.sort_unstable();
    let groups = ranked.chunk_by(|(one, _), (other, _)| one == other);
    groups
        .map(|group| group.iter().map(|(_, place)| *place).collect())
        .collect()
}
