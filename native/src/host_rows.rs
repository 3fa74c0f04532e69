//! What one worker has counted by upstream host since its last tick.
//!
//! All memory is there before the first request, so that a new host costs no allocation. Hosts beyond the bound on names need rows for
//! some ticks only: there is room for [`SPARE`] of them, and what exceeds that is counted in one place.

use core::hash::{Hash, Hasher};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tidegate_core::UpstreamKey;

use crate::host_verdict::HostCount;

/// How many counts a host has.
pub(crate) const COUNTS: usize = HostCount::ALL.len();
/// Rows for hosts without names of their own.
const SPARE: usize = 256;
/// Bytes of an address that are kept: those at its end, because Istio's internal addresses begin alike.
const ADDRESS_BYTES: usize = 96;

/// The rows; `H` is what is known of a host besides.
#[derive(Debug)]
pub(crate) struct HostRows<H> {
    most: usize,
    rows: HashMap<UpstreamHost, HostRow<H>>,
    rest: Growth,
}

/// A host of an upstream, whose key has this hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UpstreamHost {
    pub(crate) upstream: u64,
    address: Address,
}

/// The end of an address, with zeros after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    bytes: [u8; ADDRESS_BYTES],
    length: usize,
}

/// What is known and counted of one host.
#[derive(Debug)]
pub(crate) struct HostRow<H> {
    pub(crate) key: Arc<UpstreamKey>,
    growth: Growth,
    pub(crate) host: Option<H>,
    /// Whether it stays when there are many rows.
    is_lasting: bool,
}

/// Counts since the last tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Growth([u32; COUNTS]);

impl<H> HostRows<H> {
    /// No rows yet, for at most `most` hosts with names of their own, and some others.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            rows: HashMap::with_capacity(most + SPARE),
            rest: Growth::default(),
        }
    }

    /// Most hosts with names of their own.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// The counts of a host, to add a request to.
    pub(crate) fn growth(
        &mut self,
        upstream: u64,
        key: &Arc<UpstreamKey>,
        address: &[u8],
    ) -> &mut Growth {
        let address = Address::of(address);
        let is_full = self.rows.len() >= self.most + SPARE;
        match self.rows.entry(UpstreamHost { upstream, address }) {
            Entry::Occupied(row) => &mut row.into_mut().growth,
            Entry::Vacant(_) if is_full => &mut self.rest,
            Entry::Vacant(place) => {
                let row = HostRow {
                    key: Arc::clone(key),
                    growth: Growth::default(),
                    host: None,
                    is_lasting: false,
                };
                &mut place.insert(row).growth
            }
        }
    }

    /// Takes the counts of all hosts. `take` returns whether a host stays when there are many.
    pub(crate) fn take(
        &mut self,
        mut take: impl FnMut(&UpstreamHost, &mut HostRow<H>, Growth) -> bool,
    ) {
        for (host, row) in &mut self.rows {
            if !row.growth.is_empty() {
                let growth = core::mem::take(&mut row.growth);
                row.is_lasting = take(host, row, growth);
            }
        }
        if self.rows.len() > self.most + SPARE / 2 {
            // A new map: places of rows that were removed from the old one would use up its room.
            let mut kept = HashMap::with_capacity(self.most + SPARE);
            kept.extend(self.rows.drain().filter(|(_, row)| row.is_lasting));
            self.rows = kept;
        }
    }

    /// Takes the counts of hosts for which there was no row.
    pub(crate) const fn take_rest(&mut self) -> Growth {
        core::mem::replace(&mut self.rest, Growth([0; COUNTS]))
    }
}

impl UpstreamHost {
    pub(crate) fn address(&self) -> &[u8] {
        self.address.text()
    }
}

impl Address {
    fn of(text: &[u8]) -> Self {
        let text = text.last_chunk::<ADDRESS_BYTES>().map_or(text, |end| end);
        let mut bytes = [0; ADDRESS_BYTES];
        let copied = bytes.iter_mut().zip(text).map(|(to, from)| *to = *from);
        let length = copied.count();
        Self { bytes, length }
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Hash for Address {
    fn hash<S: Hasher>(&self, state: &mut S) {
        state.write(self.text());
    }
}

impl Growth {
    pub(crate) fn add(&mut self, count: HostCount) {
        if let Some(it) = self.0.get_mut(count as usize) {
            *it = it.wrapping_add(1);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; COUNTS]
    }

    /// In the order of [`HostCount::ALL`].
    pub(crate) const fn counts(&self) -> [u32; COUNTS] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Arc<UpstreamKey> {
        Arc::new(UpstreamKey {
            cluster: "web".to_owned(),
            route: None,
        })
    }

    fn address(number: usize, port: u16) -> String {
        format!("10.0.{}.{}:{port}", number / 256, number % 256)
    }

    fn count(rows: &mut HostRows<()>, upstream: u64, address: &str) {
        let growth = rows.growth(upstream, &key(), address.as_bytes());
        growth.add(HostCount::Requests);
    }

    /// Hosts at port 8080 have names.
    fn taken(rows: &mut HostRows<()>) -> Vec<(u64, String, u32)> {
        let mut taken = Vec::new();
        rows.take(|host, _, growth| {
            let address = String::from_utf8_lossy(host.address()).into_owned();
            taken.push((host.upstream, address, growth.counts()[0]));
            host.address().ends_with(b":8080")
        });
        taken.sort();
        taken
    }

    #[test]
    fn each_host_of_each_upstream_has_counts_of_its_own() {
        let mut rows = HostRows::new(10);
        for (upstream, address) in [(1, "a:1"), (2, "a:1"), (1, "b:1"), (1, "a:1")] {
            count(&mut rows, upstream, address);
        }
        rows.growth(1, &key(), b"b:1").add(HostCount::Slow);
        let expected = [(1, "a:1", 2), (1, "b:1", 1), (2, "a:1", 1)];
        let expected = expected.map(|(upstream, it, count)| (upstream, it.to_owned(), count));
        assert_eq!(taken(&mut rows), expected);
        assert!(taken(&mut rows).is_empty());
        count(&mut rows, 1, "b:1");
        assert_eq!(taken(&mut rows), [(1, "b:1".to_owned(), 1)]);
    }

    #[test]
    fn a_flood_of_hosts_is_counted_to_the_last_and_leaves_those_with_names() {
        let (most, flood) = (1_000, 5_000);
        let mut rows = HostRows::new(most);
        for number in 0..most {
            count(&mut rows, 7, &address(number, 8080));
        }
        assert_eq!(taken(&mut rows).len(), most);
        let lost = u32::try_from(flood - SPARE).unwrap();
        let room = rows.rows.capacity();
        for round in 0..3 {
            for number in 0..flood {
                count(&mut rows, 7, &address(number, 80));
            }
            assert_eq!(taken(&mut rows).len(), SPARE, "round {round}");
            assert_eq!(rows.take_rest().counts()[0], lost);
            assert!(rows.take_rest().is_empty());
            assert_eq!(rows.rows.len(), most);
            for number in 0..most {
                count(&mut rows, 7, &address(number, 8080));
            }
            assert_eq!(taken(&mut rows).len(), most);
            assert_eq!(rows.rows.len(), most, "each was found again");
            assert_eq!(rows.rows.capacity(), room, "no memory was needed");
        }
    }

    #[test]
    fn a_few_hosts_without_names_keep_their_rows() {
        let mut rows = HostRows::new(1);
        for _ in 0..3 {
            (0..=SPARE / 2).for_each(|number| count(&mut rows, 7, &address(number, 80)));
            assert_eq!(taken(&mut rows).len(), SPARE / 2 + 1);
            assert_eq!(rows.rows.len(), SPARE / 2 + 1);
        }
    }

    #[test]
    fn a_long_address_is_known_by_its_end() {
        let mut rows = HostRows::new(10);
        let long = |end: &str| format!("envoy://{}/{end}", "x".repeat(2 * ADDRESS_BYTES));
        for end in ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.1:80", ""] {
            count(&mut rows, 1, &long(end));
        }
        count(&mut rows, 1, "");
        let taken = taken(&mut rows);
        let counts: Vec<u32> = taken.iter().map(|(_, _, count)| *count).collect();
        assert_eq!(counts, [1, 2, 1, 1]);
        assert!(taken[1].1.ends_with("/10.0.0.1:80"));
    }
}
