//! The queue of events, in the order of time, then of creation. Its cost does not grow with its length.
//!
//! A calendar queue (R. Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation", CACM 1988): events lie
//! unordered in buckets of time, and only the bucket under way is in order. The buckets cover one revolution. Events of
//! later revolutions lie together, and are spread over the buckets when their revolution begins; those that were pushed in
//! the order of their times, as the deadlines of requests, just wait in line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use tidegate_core::Instant;

/// A bucket is 2^16 ns long: some hundreds of events at a million requests a second.
const WIDTH_BITS: u32 = 16;
/// A revolution of 0.5 s: nearly every answer comes within it.
const BUCKETS: u64 = 8_192;
/// Bits of a word of the map of buckets.
const WORD: u64 = 64;

/// An event and when it is due.
#[derive(Debug, Clone, Copy)]
struct QueueEntry<T> {
    at: Instant,
    sequence: u64,
    what: T,
}

impl<T> QueueEntry<T> {
    /// The number of its bucket since the beginning of time.
    const fn bucket(&self) -> u64 {
        self.at.as_nanos() >> WIDTH_BITS
    }

    /// Sort key; the next event has the greatest.
    const fn key(&self) -> Reverse<(Instant, u64)> {
        Reverse((self.at, self.sequence))
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// The bucket under way.
    current: u64,
    /// What is left of it, the next event last. Events that are due before its end go here.
    opened: Vec<QueueEntry<T>>,
    /// The other buckets of its revolution, and a bit for each that holds something.
    buckets: Vec<Vec<QueueEntry<T>>>,
    filled: Vec<u64>,
    /// Events that were pushed for a later revolution, by its number ...
    later: BTreeMap<u64, Vec<QueueEntry<T>>>,
    /// ... and, in their order, those that came after all others of the line.
    line: VecDeque<QueueEntry<T>>,
    /// Emptied buckets, for reuse.
    spare: Vec<Vec<QueueEntry<T>>>,
    sequence: u64,
}

impl<T> Queue<T> {
    /// An empty queue from `start` on.
    pub(super) fn new(start: Instant) -> Self {
        Self {
            current: start.as_nanos() >> WIDTH_BITS,
            opened: Vec::new(),
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            filled: (0..BUCKETS / WORD).map(|_| 0).collect(),
            later: BTreeMap::new(),
            line: VecDeque::new(),
            spare: Vec::new(),
            sequence: 0,
        }
    }

    pub(super) fn push(&mut self, at: Instant, what: T) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.place(QueueEntry { at, sequence, what });
    }

    /// The next event and its time.
    pub(super) fn pop(&mut self) -> Option<(Instant, T)> {
        loop {
            let line = self.line.front().filter(|one| one.bucket() <= self.current);
            let next = match (line, self.opened.last()) {
                (Some(line), Some(opened)) if line.key() < opened.key() => self.opened.pop(),
                (Some(_), _) => self.line.pop_front(),
                (None, _) => self.opened.pop(),
            };
            match next {
                Some(QueueEntry { at, what, .. }) => return Some((at, what)),
                None => self.advance()?,
            }
        }
    }

    /// Goes to the next bucket that holds something; none if nothing is left. The bucket before is empty.
    fn advance(&mut self) -> Option<()> {
        let line = self.line.front().map(QueueEntry::bucket);
        match self.next_filled() {
            Some(bucket) if line.is_none_or(|line| bucket <= line) => self.open(bucket),
            _ => {
                let revolution = line.map(|line| line / BUCKETS);
                let later = self.later.keys().next().copied();
                if revolution == Some(self.current / BUCKETS) {
                    self.current = line?;
                } else {
                    self.begin_revolution(later.into_iter().chain(revolution).min()?);
                }
            }
        }
        Some(())
    }

    fn place(&mut self, entry: QueueEntry<T>) {
        let bucket = entry.bucket();
        if bucket <= self.current {
            let key = entry.key();
            let place = self.opened.partition_point(|other| other.key() < key);
            self.opened.insert(place, entry);
        } else if bucket / BUCKETS == self.current / BUCKETS {
            let slot = index(bucket % BUCKETS);
            if let (Some(entries), Some(word)) = (
                self.buckets.get_mut(slot),
                self.filled.get_mut(index(bucket % BUCKETS / WORD)),
            ) {
                if entries.capacity() == 0 {
                    *entries = self.spare.pop().unwrap_or_default();
                }
                entries.push(entry);
                *word |= 1 << (bucket % WORD);
            }
        } else if self.line.back().is_none_or(|last| last.at <= entry.at) {
            self.line.push_back(entry);
        } else {
            self.later.entry(bucket / BUCKETS).or_default().push(entry);
        }
    }

    /// The next bucket of this revolution that holds something.
    fn next_filled(&self) -> Option<u64> {
        let revolution = self.current / BUCKETS * BUCKETS;
        let from = self.current % BUCKETS + 1;
        let words = self.filled.iter().zip(0..).skip(index(from / WORD));
        words
            .map(|(word, number)| {
                let passed = from.saturating_sub(number * WORD);
                (word & (u64::MAX << passed), number)
            })
            .find(|(word, _)| *word != 0)
            .map(|(word, number)| revolution + number * WORD + u64::from(word.trailing_zeros()))
    }

    /// Puts a bucket in order. The one before it is empty.
    fn open(&mut self, bucket: u64) {
        self.current = bucket;
        if let (Some(entries), Some(word)) = (
            self.buckets.get_mut(index(bucket % BUCKETS)),
            self.filled.get_mut(index(bucket % BUCKETS / WORD)),
        ) {
            let emptied = std::mem::replace(&mut self.opened, std::mem::take(entries));
            self.spare.push(emptied);
            self.opened.sort_unstable_by_key(QueueEntry::key);
            *word &= !(1 << (bucket % WORD));
        }
    }

    /// Spreads the events of a revolution.
    fn begin_revolution(&mut self, number: u64) {
        self.current = number * BUCKETS;
        for entry in self.later.remove(&number).unwrap_or_default() {
            self.place(entry);
        }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn time_comes_first_then_the_order_of_making_near_and_far() {
        let mut queue = Queue::new(at(1_000));
        // Two buckets apart, in later revolutions, and the same times again.
        let times = [
            200_000,
            5_000,
            3_000_000_000,
            5_000,
            700_000_000,
            200_000,
            1_000,
            3_000_000_000,
        ];
        for (name, time) in times.iter().enumerate() {
            queue.push(at(*time), name);
        }
        let order: Vec<usize> = std::iter::from_fn(|| queue.pop())
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, [6, 1, 3, 0, 5, 4, 2, 7]);
    }

    #[test]
    fn what_is_due_in_the_bucket_under_way_comes_in_its_turn() {
        let mut queue = Queue::new(at(0));
        queue.push(at(900_000), 'a');
        queue.push(at(900_002), 'd');
        assert_eq!(queue.pop(), Some((at(900_000), 'a')));
        queue.push(at(900_001), 'b');
        queue.push(at(900_001), 'c');
        let order: String = std::iter::from_fn(|| queue.pop())
            .map(|(_, name)| name)
            .collect();
        assert_eq!(order, "bcd");
    }

    #[test]
    fn a_random_tree_comes_out_in_the_order_of_a_heap() {
        let mut queue = Queue::new(at(0));
        let mut heap = std::collections::BinaryHeap::new();
        let mut rng = crate::rng::generator(3, crate::rng::RngPurpose::Network);
        let mut made = 0_u64;
        queue.push(at(0), made);
        heap.push(Reverse((at(0), made)));
        while let Some((time, name)) = queue.pop() {
            assert_eq!(heap.pop(), Some(Reverse((time, name))));
            for _ in 0..2 {
                if made < 20_000 {
                    made += 1;
                    // Mostly near, some beyond several revolutions.
                    let ahead = libm::pow(crate::rng::unit(&mut rng), 6.0) * 2e9;
                    let ahead = u64::try_from(crate::number::floor(ahead)).unwrap();
                    let due = at(time.as_nanos() + ahead);
                    queue.push(due, made);
                    heap.push(Reverse((due, made)));
                }
            }
        }
        assert!(heap.is_empty() && made == 20_000);
    }
}
