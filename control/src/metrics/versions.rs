//! The number of resources per running version, in a bounded number of series.
//!
//! A version is a hash, and every change of policy creates a new one. The most frequent versions have a series each,
//! labeled with their first digits; during a rollout these are the old and the new version.

use std::collections::BTreeMap;

use crate::fleet::ProxyRecord;

/// The label of all versions without a series of their own.
const OTHER: &str = "other";
/// The label of resources without a version.
const NONE: &str = "none";
/// Shown digits of a version: enough to distinguish versions that exist at the same time.
const SHOWN: usize = 12;

/// The `max` most frequent versions, the rest as `other`, and resources without a version as `none`.
pub(super) fn most_frequent(proxies: &[ProxyRecord], max: usize) -> Vec<(String, usize)> {
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
    // A stable sort keeps equally frequent versions in the order of their names.
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
    fn the_most_frequent_have_a_series_and_the_rest_one() {
        let versions = ["b", "a", "c", "b", "0123456789abcdef", "b", "a"];
        let mut proxies: Vec<_> = versions.map(|version| proxy(Some(version))).into();
        proxies.push(proxy(None));

        let found = most_frequent(&proxies, 2);

        let expected = [("b", 3), ("a", 2), ("other", 2), ("none", 1)];
        assert_eq!(found, expected.map(|(v, n)| (v.to_owned(), n)));
        assert!(most_frequent(&proxies, 9).contains(&("0123456789ab".to_owned(), 1)));
        assert!(most_frequent(&[], 2).is_empty());
    }
}
