//! A worker's counts as bytes: those that are not zero, each with its number.
//!
//! Most of an upstream's counts stay zero: nothing is shed, and latencies fall into a few buckets. So a count is written as
//! the distance of its number from the last one's, in one byte, and its value as a varint (LEB128). The leader keeps the last
//! report in this form, and takes differences without unpacking either side.

use super::varint;
use crate::tally::{Counted, Tally};

/// Appends the counts to `bytes`.
pub(crate) fn write(counted: &Counted, bytes: &mut Vec<u8>) {
    let mut next = 0;
    counted.for_each_grown(|number, value| {
        // There are fewer than 256 numbers.
        bytes.push(u8::try_from(number - next).unwrap_or(u8::MAX));
        next = number + 1;
        varint::put(value, bytes);
    });
}

/// Adds to `sum` the growth of the counts between `before` and `now`; no bytes stand for zero counts.
pub(crate) fn add_difference(sum: &mut Tally, before: &[u8], now: &[u8]) {
    if before == now {
        return;
    }
    let (mut before, mut now) = (CountsReader::new(before), CountsReader::new(now));
    let (mut old, mut new) = (before.next(), now.next());
    loop {
        match (old, new) {
            (None, None) => return,
            (Some((number, then)), Some((same, value))) if number == same => {
                if value != then {
                    sum.add_grown(number, value.wrapping_sub(then));
                }
                (old, new) = (before.next(), now.next());
            }
            (Some((number, then)), other) if other.is_none_or(|(later, _)| number < later) => {
                // It wrapped around to zero.
                sum.add_grown(number, 0_u64.wrapping_sub(then));
                old = before.next();
            }
            (_, Some((number, value))) => {
                sum.add_grown(number, value);
                new = now.next();
            }
            (Some(_), None) => old = before.next(),
        }
    }
}

/// Reads numbers and values, up to the end or to the first malformed byte.
struct CountsReader<'a> {
    rest: &'a [u8],
    next: usize,
}

impl<'a> CountsReader<'a> {
    const fn new(rest: &'a [u8]) -> Self {
        Self { rest, next: 0 }
    }
}

impl Iterator for CountsReader<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let (gap, rest) = self.rest.split_first()?;
        self.rest = rest;
        let number = self.next.saturating_add(usize::from(*gap));
        self.next = number.saturating_add(1);
        Some((number, varint::take(&mut self.rest)?))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::shed::ShedReason;
    use crate::tally::Count;

    fn bytes(counted: &Counted) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(counted, &mut bytes);
        bytes
    }

    fn difference(before: &[u8], now: &[u8]) -> Tally {
        let mut sum = Tally::default();
        add_difference(&mut sum, before, now);
        sum
    }

    #[test]
    fn counts_survive_the_wire() {
        let mut counted = Counted::default();
        counted.add(Count::Arrivals, 300);
        counted.add(Count::SuccessLoadSquares, u64::MAX);
        counted.add_shed(ShedReason::BreakerHalfOpen, false);
        counted.add_answer(Duration::MAX, true);
        let sum = difference(&[], &bytes(&counted));
        assert_eq!(sum.get(Count::Arrivals), 300);
        assert_eq!(sum.get(Count::SuccessLoadSquares), u64::MAX);
        assert_eq!(sum.would_shed(ShedReason::BreakerHalfOpen), 1);
        assert_eq!(sum.latency.len(), 1);
        assert!(bytes(&Counted::default()).is_empty());
    }

    #[test]
    fn a_difference_is_the_growth_even_if_a_count_wrapped() {
        let mut counted = Counted::default();
        counted.add(Count::Arrivals, 7);
        counted.add(Count::Admitted, u32::MAX.into());
        counted.add(Count::InFlightMicros, u64::MAX - 1);
        let before = bytes(&counted);
        counted.add(Count::Admitted, 1);
        counted.add(Count::Failures, 2);
        counted.add(Count::InFlightMicros, 5);
        let sum = difference(&before, &bytes(&counted));
        assert_eq!(sum.get(Count::Arrivals), 0);
        assert_eq!(sum.get(Count::Admitted), 1);
        assert_eq!(sum.get(Count::Failures), 2);
        assert_eq!(sum.get(Count::InFlightMicros), 5);
    }

    #[test]
    fn malformed_bytes_end_the_reading() {
        for bytes in [
            &[255, 255, 255][..],
            &[0, 255],
            &[0; 400],
            &[200, 1, 200, 1],
        ] {
            let _ = difference(bytes, bytes);
            let _ = difference(&[], bytes);
        }
        assert_eq!(difference(&[], &[0, 128]), Tally::default(), "cut off");
    }
}
