//! Which worker publishes under which key.
//!
//! Shared data cannot be deleted, so keys are reused. A worker takes the first free place. The leader frees the places of
//! workers that stopped reporting. The table is a list of worker numbers; 0 is a free place.

use std::collections::BTreeMap;

use core::time::Duration;

use tidegate_core::Instant;

/// Most workers of one proxy.
const MAX_PLACES: usize = 1024;

/// The table of places, as this worker read it last.
#[derive(Clone, Debug, Default)]
pub struct Places {
    workers: Vec<u64>,
    /// As it was read, before any change of ours.
    read: Vec<u64>,
    /// When each worker last reported, as far as this worker saw.
    seen: BTreeMap<u64, Instant>,
}

impl Places {
    /// Reads the table from its bytes.
    pub fn load(&mut self, bytes: Option<&[u8]>) {
        self.workers = decode(bytes.unwrap_or_default());
        self.read.clone_from(&self.workers);
    }

    /// The bytes of the table, for shared data.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.workers
            .iter()
            .flat_map(|worker| worker.to_le_bytes())
            .collect()
    }

    /// Whether the table was read from these bytes.
    #[must_use]
    pub fn came_from(&self, bytes: &[u8]) -> bool {
        decode(bytes) == self.read
    }

    /// The place of a worker.
    #[must_use]
    pub fn place_of(&self, worker: u64) -> Option<usize> {
        self.workers.iter().position(|other| *other == worker)
    }

    /// Gives the worker the first free place, if there is one.
    pub fn claim(&mut self, worker: u64) -> Option<usize> {
        if let Some(place) = self.place_of(0) {
            if let Some(free) = self.workers.get_mut(place) {
                *free = worker;
            }
            return Some(place);
        }
        if self.workers.len() >= MAX_PLACES {
            return None;
        }
        self.workers.push(worker);
        Some(self.workers.len() - 1)
    }

    /// How many places are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.workers.iter().filter(|worker| **worker != 0).count()
    }

    /// All places that are taken, except that of `own`, each with its worker.
    pub fn others(&self, own: u64) -> impl Iterator<Item = (usize, u64)> {
        self.workers
            .iter()
            .copied()
            .enumerate()
            .filter(move |(_, worker)| *worker != 0 && *worker != own)
    }

    /// Notes that a worker reported at this time.
    pub fn see(&mut self, worker: u64, at: Instant) {
        self.seen.insert(worker, at);
    }

    /// Frees the places of workers that did not report for `patience`, and returns whether there were any. For a worker that
    /// never reported, the time starts when it was first found in the table.
    pub fn forget_gone(&mut self, now: Instant, patience: Duration) -> bool {
        let mut changed = false;
        for worker in self.workers.iter_mut().filter(|worker| **worker != 0) {
            let at = *self.seen.entry(*worker).or_insert(now);
            if now.saturating_since(at) >= patience {
                self.seen.remove(worker);
                *worker = 0;
                changed = true;
            }
        }
        self.seen.retain(|worker, _| self.workers.contains(worker));
        changed
    }
}

fn decode(bytes: &[u8]) -> Vec<u64> {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .take(MAX_PLACES)
        .map(|chunk| u64::from_le_bytes(*chunk))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    fn at(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    #[test]
    fn places_of_workers_that_are_gone_are_used_again() {
        let mut places = Places::default();
        assert_eq!([places.claim(11), places.claim(22)], [Some(0), Some(1)]);
        places.see(11, at(0));
        places.see(22, at(2));
        assert!(!places.forget_gone(at(2), PATIENCE));
        assert!(places.forget_gone(at(4), PATIENCE));
        assert_eq!(places.place_of(11), None);
        assert_eq!(places.taken(), 1);
        assert_eq!(places.claim(33), Some(0));
    }

    #[test]
    fn a_worker_that_never_reported_keeps_its_place_for_a_while() {
        let mut places = Places::default();
        places.claim(11);
        assert!(!places.forget_gone(at(10), PATIENCE), "first seen now");
        assert!(!places.forget_gone(at(12), PATIENCE));
        assert!(places.forget_gone(at(13), PATIENCE));
    }

    #[test]
    fn the_table_reads_back_from_its_bytes() {
        let mut places = Places::default();
        places.claim(11);
        places.claim(22);
        let bytes = places.encode();
        let mut read = Places::default();
        read.load(Some(&bytes));
        assert_eq!(read.place_of(22), Some(1));
        assert!(read.came_from(&bytes));
        read.claim(33);
        assert!(read.came_from(&bytes), "before the change");
        read.load(Some(b"short"));
        assert_eq!(read.taken(), 0);
    }
}
