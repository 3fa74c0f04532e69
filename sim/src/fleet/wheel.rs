//! A queue of events whose cost does not grow with its length.
//!
//! A calendar queue (R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation", CACM 1988): events lie
//! unordered in buckets of time, and only the bucket under way is ordered, by time and then by the order of making.
//! What lies beyond the last bucket waits in a heap.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tidegate_core::Instant;

/// A bucket is 2^16 ns long: some dozens of events at a million requests a second.
const WIDTH_BITS: u32 = 16;
/// This many buckets reach 0.5 s ahead, beyond nearly every answer.
const BUCKETS: u64 = 8_192;
/// Emptied buckets that are kept for reuse.
const SPARE: usize = 64;

#[derive(Debug)]
struct WheelEntry<T> {
    at: u64,
    sequence: u64,
    what: T,
}

impl<T> PartialEq for WheelEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<T> Eq for WheelEntry<T> {}

impl<T> PartialOrd for WheelEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for WheelEntry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

type Heap<T> = BinaryHeap<Reverse<WheelEntry<T>>>;

/// The queue.
#[derive(Debug)]
pub(super) struct Wheel<T> {
    /// The bucket under way, by its number since the beginning of time.
    current: u64,
    /// What it holds, and events that came too late for their own bucket.
    opened: Heap<T>,
    buckets: Vec<Vec<Reverse<WheelEntry<T>>>>,
    beyond: Heap<T>,
    spare: Vec<Vec<Reverse<WheelEntry<T>>>>,
    sequence: u64,
}

impl<T> Wheel<T> {
    /// An empty queue from `start` on.
    pub(super) fn new(start: Instant) -> Self {
        Self {
            current: start.as_nanos() >> WIDTH_BITS,
            opened: BinaryHeap::new(),
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            beyond: BinaryHeap::new(),
            spare: Vec::new(),
            sequence: 0,
        }
    }

    /// Adds an event.
    pub(super) fn push(&mut self, at: Instant, what: T) {
        self.sequence += 1;
        let at = at.as_nanos();
        let entry = Reverse(WheelEntry {
            at,
            sequence: self.sequence,
            what,
        });
        let number = at >> WIDTH_BITS;
        if number <= self.current {
            self.opened.push(entry);
        } else if number - self.current >= BUCKETS {
            self.beyond.push(entry);
        } else if let Some(bucket) = self.buckets.get_mut(index(number)) {
            if bucket.capacity() == 0 {
                *bucket = self.spare.pop().unwrap_or_default();
            }
            bucket.push(entry);
        }
    }

    /// Takes the next event before `end`.
    pub(super) fn pop_before(&mut self, end: Instant) -> Option<(Instant, T)> {
        let end = end.as_nanos();
        loop {
            match self.opened.peek() {
                Some(Reverse(entry)) if entry.at < end => break,
                Some(_) => return None,
                None if (self.current + 1) << WIDTH_BITS >= end => return None,
                None => self.open(self.current + 1),
            }
        }
        let Reverse(entry) = self.opened.pop()?;
        Some((Instant::from_nanos(entry.at), entry.what))
    }

    fn open(&mut self, number: u64) {
        self.current = number;
        if let Some(bucket) = self.buckets.get_mut(index(number)) {
            let emptied =
                std::mem::replace(&mut self.opened, BinaryHeap::from(std::mem::take(bucket)));
            if emptied.capacity() > 0 && self.spare.len() < SPARE {
                self.spare.push(emptied.into_vec());
            }
        }
        while let Some(Reverse(next)) = self.beyond.peek()
            && next.at >> WIDTH_BITS <= number
        {
            self.opened.extend(self.beyond.pop());
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number % BUCKETS).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn time_comes_first_then_the_order_of_making_near_and_far() {
        let mut wheel = Wheel::new(at(1_000));
        // Two buckets apart, beyond the last bucket, and the same times again.
        let times = [
            200_000,
            5_000,
            3_000_000_000,
            5_000,
            700_000_000,
            200_000,
            1_000,
        ];
        for (name, time) in times.iter().enumerate() {
            wheel.push(at(*time), name);
        }
        let end = at(10_000_000_000);
        let order: Vec<usize> = std::iter::from_fn(|| wheel.pop_before(end))
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, [6, 1, 3, 0, 5, 4, 2]);
    }

    #[test]
    fn nothing_comes_before_its_window_and_late_comers_still_come() {
        let mut wheel = Wheel::new(at(0));
        wheel.push(at(900_000), 'b');
        assert_eq!(wheel.pop_before(at(900_000)), None);
        wheel.push(at(850_000), 'a');
        assert_eq!(wheel.pop_before(at(1_000_000)), Some((at(850_000), 'a')));
        assert_eq!(wheel.pop_before(at(1_000_000)), Some((at(900_000), 'b')));
    }

    #[test]
    fn a_random_walk_comes_out_sorted() {
        let mut wheel = Wheel::new(at(0));
        let mut rng = crate::rng::generator(3, crate::rng::RngPurpose::Fleet(0));
        let (mut now, mut popped) = (0, 0);
        wheel.push(at(0), 0);
        while let Some((time, depth)) = wheel.pop_before(at(20_000_000_000)) {
            assert!(time.as_nanos() >= now);
            (now, popped) = (time.as_nanos(), popped + 1);
            if depth < 12 {
                for _ in 0..2 {
                    let ahead = libm::pow(crate::rng::unit(&mut rng), 4.0) * 1e9;
                    let ahead = u64::try_from(crate::number::floor(ahead)).unwrap();
                    wheel.push(at(now + ahead), depth + 1);
                }
            }
        }
        assert_eq!(popped, 8_191, "every node of a tree of depth 12");
    }
}
