//! One leader at a time.
//!
//! The lease names a worker and an end; its holder renews it on every tick by compare and swap. When it runs out (the
//! holder's VM is gone, or its thread is stuck) whoever ticks first takes it. Two leaders at once are possible for
//! less than a tick, when a stuck holder wakes up between its read and its write; the write then fails.

use core::time::Duration;

use tidegate_core::Instant;

use crate::api::{Expect, Host, HostError, Stored};

/// Takes or renews the lease at `key` for `span`; answers whether `worker` holds it.
///
/// # Errors
/// When shared data cannot be read or written.
pub fn take(
    host: &impl Host,
    key: &str,
    worker: u64,
    now: Instant,
    span: Duration,
) -> Result<bool, HostError> {
    let value = host.shared(key)?;
    let expect = value
        .as_ref()
        .map_or(Expect::Absent, |value| Expect::Version(value.version));
    // One that cannot be read has no holder.
    let held = value.and_then(|value| Lease::decode(&value.bytes));
    if let Some(lease) = held
        && lease.holder != worker
        && now < lease.until
        // A clock that jumped back must not make it last.
        && lease.until.saturating_since(now) <= span
    {
        return Ok(false);
    }
    let lease = Lease {
        holder: worker,
        until: now + span,
    };
    Ok(host.set_shared(key, &lease.encode(), expect)? == Stored::Done)
}

/// Who leads, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    holder: u64,
    until: Instant,
}

impl Lease {
    fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (holder, until) = bytes.split_at_mut(8);
        holder.copy_from_slice(&self.holder.to_le_bytes());
        until.copy_from_slice(&self.until.as_nanos().to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (holder, rest) = bytes.split_first_chunk::<8>()?;
        let until = rest.first_chunk::<8>()?;
        Some(Self {
            holder: u64::from_le_bytes(*holder),
            until: Instant::from_nanos(u64::from_le_bytes(*until)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    const SPAN: Duration = Duration::from_millis(500);

    fn take_at(host: &FakeHost, worker: u64, millis: u64) -> bool {
        let now = Instant::from_nanos(millis * 1_000_000);
        take(host, "lease", worker, now, SPAN).unwrap()
    }

    #[test]
    fn one_worker_leads_until_it_stops_renewing() {
        let host = FakeHost::default();
        assert!(take_at(&host, 1, 0));
        assert!(!take_at(&host, 2, 100));
        assert!(take_at(&host, 1, 400));
        assert!(!take_at(&host, 2, 899));
        assert!(take_at(&host, 2, 900), "the lease ran out");
        assert!(!take_at(&host, 1, 901), "and its holder has lost it");
    }

    #[test]
    fn a_clock_that_jumped_back_does_not_lock_the_lease() {
        let host = FakeHost::default();
        assert!(take_at(&host, 1, 1_000_000));
        assert!(take_at(&host, 2, 0));
    }

    #[test]
    fn nonsense_is_taken_over() {
        let host = FakeHost::default();
        host.set_shared("lease", b"?", Expect::Anything).unwrap();
        assert!(take_at(&host, 2, 0));
    }
}
