//! How many resources run which version, in a bounded number of series.
//!
//! A version is a hash: with every change of policy there is a new one. Those that most run have a series
//! each, under their first digits; during a roll-out that is the old one and the new one.

use std::collections::BTreeMap;

use crate::fleet::ProxyRecord;

/// What stands for all versions that have no series of their own.
const OTHER: &str = "other";
/// What stands for no version at all.
const NONE: &str = "none";
/// Digits of a version that are shown: enough to tell those apart that ever meet.
const SHOWN: usize = 12;

/// The `max` versions that most resources run, the rest as `other`, and those without any as `none`.
pub(super) fn most_run(proxies: &[ProxyRecord], max: usize) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut none: usize = 0;
    for resource in proxies.iter().flat_map(|proxy| proxy.resources.values()) {
        let count = match resource.running.as_deref() {
            Some(version) => counts
                .entry(
                    version
                        .split_at_checked(SHOWN)
                        .map_or(version, |(head, _)| head),
                )
                .or_default(),
            None => &mut none,
        };
        *count = count.saturating_add(1);
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    // Stable, so that equals keep the order of their names.
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest = counts.split_off(max.min(counts.len()));
    let other = rest.iter().map(|(_, count)| count).sum();
    counts
        .into_iter()
        .chain([(OTHER, other), (NONE, none)])
        .filter(|(_, count)| *count > 0)
        .map(|(version, count)| (version.to_owned(), count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::ResourceRecord;

    fn proxy(running: Option<&str>) -> ProxyRecord {
        let resource = ResourceRecord {
            running: running.map(ToOwned::to_owned),
            ..ResourceRecord::default()
        };
        ProxyRecord {
            resources: [("tidegate".to_owned(), resource)].into(),
            ..ProxyRecord::default()
        }
    }

    #[test]
    fn the_most_run_have_a_series_and_the_rest_one() {
        let versions = ["b", "a", "c", "b", "0123456789abcdef", "b", "a"];
        let mut proxies: Vec<_> = versions.map(|version| proxy(Some(version))).into();
        proxies.push(proxy(None));

        let found = most_run(&proxies, 2);

        let expected = [("b", 3), ("a", 2), ("other", 2), ("none", 1)];
        assert_eq!(found, expected.map(|(v, n)| (v.to_owned(), n)));
        assert!(most_run(&proxies, 9).contains(&("0123456789ab".to_owned(), 1)));
        assert!(most_run(&[], 2).is_empty());
    }
}
