//! What one worker has counted by upstream host since its last tick.
//!
//! A request's end finds its row by a hash of the upstream and the address, in a table with room for all rows and as many empty places.
//! All memory is there before the first request, so that a new host costs no allocation. Hosts beyond the bound on names need rows for
//! some ticks only: there is room for [`SPARE`] of them, and what exceeds that is counted in one place.

use std::sync::Arc;

use tidegate_core::UpstreamKey;

use crate::host_verdict::HostCount;

/// How many counts a host has.
pub(crate) const COUNTS: usize = HostCount::ALL.len();
/// Rows for hosts without names of their own.
const SPARE: usize = 256;
/// Bytes of an address that are kept: those at its end, because Istio's internal addresses begin alike.
const ADDRESS_BYTES: usize = 96;
/// 2^64 divided by the golden ratio: a multiplier that spreads bits upwards (Knuth, volume 3, section 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// A place without a row.
const EMPTY: u16 = u16::MAX;

/// The rows; `H` is what is known of a host besides.
#[derive(Debug)]
pub(crate) struct HostRows<H> {
    most: usize,
    rows: Vec<HostRow<H>>,
    /// A power of two; at least twice as many as there may be rows.
    places: Box<[u16]>,
    /// The rows with counts.
    changed: Vec<u16>,
    rest: Growth,
}

/// One host.
#[derive(Debug)]
pub(crate) struct HostRow<H> {
    pub(crate) upstream: u64,
    pub(crate) key: Arc<UpstreamKey>,
    address: Address,
    growth: Growth,
    pub(crate) host: Option<H>,
    /// Whether it stays when there are many rows.
    is_lasting: bool,
}

/// The end of an address.
#[derive(Debug)]
struct Address {
    bytes: [u8; ADDRESS_BYTES],
    length: usize,
}

/// Counts since the last tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Growth([u32; COUNTS]);

impl<H> HostRows<H> {
    /// No rows yet, for at most `most` hosts with names of their own, and some others.
    pub(crate) fn new(most: usize) -> Self {
        let room = most + SPARE;
        let places = vec![EMPTY; (2 * room).next_power_of_two()];
        Self {
            most,
            rows: Vec::with_capacity(room),
            places: places.into(),
            changed: Vec::with_capacity(room),
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
        let address = Address::end_of(address);
        let Some(number) = self.find(upstream, key, address) else {
            return &mut self.rest;
        };
        match self.rows.get_mut(usize::from(number)) {
            Some(row) => {
                if row.growth.is_empty() {
                    // There is room for all rows.
                    self.changed.push(number);
                }
                &mut row.growth
            }
            None => &mut self.rest,
        }
    }

    /// The number of a host's row, made if there is none and there is room.
    fn find(&mut self, upstream: u64, key: &Arc<UpstreamKey>, address: &[u8]) -> Option<u16> {
        let place = self.place(upstream, address)?;
        let number = *self.places.get(place)?;
        if number != EMPTY {
            return Some(number);
        }
        if self.rows.len() >= self.most + SPARE {
            return None;
        }
        let number = u16::try_from(self.rows.len()).ok()?;
        *self.places.get_mut(place)? = number;
        self.rows.push(HostRow {
            upstream,
            key: Arc::clone(key),
            address: Address::of(address),
            growth: Growth::default(),
            host: None,
            is_lasting: false,
        });
        Some(number)
    }

    /// The place with the row of a host, or else the empty one for it.
    fn place(&self, upstream: u64, address: &[u8]) -> Option<usize> {
        let mask = self.places.len().wrapping_sub(1);
        // As many bits as the mask has are taken.
        let start = usize::try_from(hash(upstream, address) >> 32).unwrap_or_default();
        // Half of the places are empty at least.
        (0..self.places.len())
            .map(|step| start.wrapping_add(step) & mask)
            .find(|place| match self.places.get(*place) {
                Some(&EMPTY) | None => true,
                Some(number) => self
                    .rows
                    .get(usize::from(*number))
                    .is_some_and(|row| row.upstream == upstream && row.address() == address),
            })
    }

    /// Takes the counts of all hosts. `take` returns whether a host stays when there are many.
    pub(crate) fn take(&mut self, mut take: impl FnMut(&mut HostRow<H>, Growth) -> bool) {
        for number in self.changed.drain(..) {
            if let Some(row) = self.rows.get_mut(usize::from(number)) {
                let growth = core::mem::take(&mut row.growth);
                row.is_lasting = take(row, growth);
            }
        }
        if self.rows.len() > self.most + SPARE / 2 {
            self.rows.retain(|row| row.is_lasting);
            self.places.fill(EMPTY);
            for number in 0..self.rows.len() {
                let row = self.rows.get(number);
                let place = row.and_then(|row| self.place(row.upstream, row.address()));
                let place = place.and_then(|place| self.places.get_mut(place));
                if let (Some(place), Ok(number)) = (place, u16::try_from(number)) {
                    *place = number;
                }
            }
        }
    }

    /// Takes the counts of hosts for which there was no row.
    pub(crate) const fn take_rest(&mut self) -> Growth {
        core::mem::replace(&mut self.rest, Growth([0; COUNTS]))
    }
}

impl<H> HostRow<H> {
    pub(crate) fn address(&self) -> &[u8] {
        self.address
            .bytes
            .get(..self.address.length)
            .unwrap_or_default()
    }
}

impl Address {
    fn of(text: &[u8]) -> Self {
        let mut bytes = [0; ADDRESS_BYTES];
        let copied = bytes.iter_mut().zip(Self::end_of(text));
        let length = copied.map(|(to, from)| *to = *from).count();
        Self { bytes, length }
    }

    /// What is kept of it.
    fn end_of(text: &[u8]) -> &[u8] {
        text.last_chunk::<ADDRESS_BYTES>().map_or(text, |end| end)
    }
}

fn hash(upstream: u64, address: &[u8]) -> u64 {
    let (words, rest) = address.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    words.chain(rest).fold(upstream, |hash, part| {
        (hash ^ part).wrapping_mul(SPREAD).rotate_left(31)
    })
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
        rows.take(|row, growth| {
            let address = String::from_utf8_lossy(row.address()).into_owned();
            taken.push((row.upstream, address, growth.counts()[0]));
            row.address().ends_with(b":8080")
        });
        taken
    }

    #[test]
    fn each_host_of_each_upstream_has_counts_of_its_own() {
        let mut rows = HostRows::new(10);
        for (upstream, address) in [(1, "a:1"), (2, "a:1"), (1, "b:1"), (1, "a:1")] {
            count(&mut rows, upstream, address);
        }
        rows.growth(1, &key(), b"b:1").add(HostCount::Slow);
        let expected = [(1, "a:1", 2), (2, "a:1", 1), (1, "b:1", 1)];
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
        assert_eq!(counts, [2, 1, 1, 1]);
        assert!(taken[0].1.ends_with("/10.0.0.1:80"));
    }
}
