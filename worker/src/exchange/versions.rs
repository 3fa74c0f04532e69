//! Which versions of the module run side by side.
//!
//! Each wire version has keys of its own, but the gauges of requests in flight are the process's: workers of all versions
//! count there, and a leader hears of its own version's alone. So the requests of another version would look like a leak.
//! Each version says in one table that it runs, as soon as it starts and about once a second.
//!
//! ```text
//! entry: version 1 byte | when 8 bytes, nanoseconds, little-endian
//! ```
//!
//! All versions read this, so it must stay as it is.

use core::time::Duration;

use tidegate_core::Instant;

use crate::api::{Expect, Host, HostError};

/// How often a version says that it runs.
const EVERY: Duration = Duration::from_secs(1);
/// A version that has not said so for this long is gone; some writes may be late, or be lost to those of another version.
const GONE_AFTER: Duration = Duration::from_secs(3);
const ENTRY_BYTES: usize = 1 + 8;

/// This version among those of the process.
#[derive(Clone, Debug)]
pub struct Versions {
    key: String,
    own: u8,
}

impl Versions {
    /// The version `own`, with the table at `key`.
    #[must_use]
    pub const fn new(key: String, own: u8) -> Self {
        Self { key, own }
    }

    /// Says that this version runs, and answers whether another one does.
    ///
    /// # Errors
    /// When shared data cannot be read or written.
    pub fn tell(&self, host: &impl Host, now: Instant) -> Result<bool, HostError> {
        let value = host.shared(&self.key)?;
        let expect = value
            .as_ref()
            .map_or(Expect::Absent, |value| Expect::Version(value.version));
        let mut running = decode(&value.map(|value| value.bytes).unwrap_or_default());
        running.retain(|(_, at)| is_within(*at, now, GONE_AFTER));
        let is_accompanied = running.iter().any(|(version, _)| *version != self.own);
        let is_told =
            |(version, at): &(u8, Instant)| *version == self.own && is_within(*at, now, EVERY);
        if !running.iter().any(is_told) {
            running.retain(|(version, _)| *version != self.own);
            running.push((self.own, now));
            // Beaten by another version: the next round tries again.
            let _ = host.set_shared(&self.key, &encode(&running), expect)?;
        }
        Ok(is_accompanied)
    }
}

/// Whether `at` is so close to `now`; later, as after a clock that jumped back, by no more.
fn is_within(at: Instant, now: Instant, span: Duration) -> bool {
    now.saturating_since(at) < span && at.saturating_since(now) < span
}

fn encode(running: &[(u8, Instant)]) -> Vec<u8> {
    let entries = running.iter();
    entries
        .flat_map(|(version, at)| core::iter::once(*version).chain(at.as_nanos().to_le_bytes()))
        .collect()
}

fn decode(bytes: &[u8]) -> Vec<(u8, Instant)> {
    let entries = bytes.as_chunks::<ENTRY_BYTES>().0.iter();
    let read = entries.filter_map(|entry| {
        let (version, at) = entry.split_first()?;
        let at = u64::from_le_bytes(*at.first_chunk()?);
        Some((*version, Instant::from_nanos(at)))
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn versions(own: u8) -> Versions {
        Versions::new("versions".to_owned(), own)
    }

    #[test]
    fn a_version_knows_of_another_while_that_runs() {
        let host = FakeHost::default();
        let (old, new) = (versions(5), versions(6));
        let tell = |version: &Versions, millis| version.tell(&host, at(millis)).unwrap();
        assert!(!tell(&old, 0), "alone");
        assert!(tell(&new, 100));
        assert!(tell(&old, 200));
        assert!(tell(&old, 3_000));
        assert!(!tell(&old, 3_100), "the new one is gone");
        assert!(tell(&new, 3_200), "it is back, and the old one still there");
    }

    #[test]
    fn a_table_is_written_once_a_second_by_each_version() {
        let host = FakeHost::default();
        let written = || host.shared("versions").unwrap().unwrap().version;
        for tick in 0..20 {
            versions(5).tell(&host, at(tick * 100)).unwrap();
            versions(6).tell(&host, at(tick * 100)).unwrap();
        }
        assert_eq!(written(), 4);
    }

    #[test]
    fn neither_a_jumped_clock_nor_malformed_data_makes_a_version() {
        let host = FakeHost::default();
        versions(6).tell(&host, at(1_000_000)).unwrap();
        assert!(!versions(5).tell(&host, at(0)).unwrap());
        host.set_shared("versions", b"nonsense", Expect::Anything)
            .unwrap();
        assert!(!versions(5).tell(&host, at(100)).unwrap());
    }
}
