//! One leader at a time.
//!
//! The lease names a worker and an end; its holder renews it on every tick by compare and swap. When it runs out (the
//! holder's VM is gone, or its thread is stuck), the first worker to tick takes it. Two leaders at once are possible for
//! less than a tick, when a stuck holder wakes up between its read and its write; the write then fails.
//!
//! Leading takes time, which grows with upstreams and workers, and must not delay requests. Envoy's main thread has a VM that
//! ticks but serves no requests. A VM cannot see on which thread it is, but one that has seen a request is not on the main
//! thread. Such a worker gives the lease up, and takes an expired one only if no other worker does.

use core::time::Duration;

use tidegate_core::Instant;

use crate::api::{Expect, Host, HostError, WriteResult};

/// Whether a worker has requests to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It has seen none.
    Idle,
    /// It has.
    Serving,
}

/// A serving worker leaves an expired lease to others for this long: some ticks.
const COURTESY: Duration = Duration::from_millis(300);
/// A serving worker that had to take the lease back offers it again after this long.
const OFFER_EVERY: Duration = Duration::from_secs(60);

/// One worker's claim to the lease at a key.
#[derive(Clone, Debug)]
pub struct LeaseClaim {
    key: String,
    worker: u64,
    span: Duration,
    offered_at: Option<Instant>,
}

impl LeaseClaim {
    /// The claim of `worker` to the lease at `key`, which lasts for `span`.
    #[must_use]
    pub const fn new(key: String, worker: u64, span: Duration) -> Self {
        Self {
            key,
            worker,
            span,
            offered_at: None,
        }
    }

    /// Takes, renews or gives up the lease. Returns whether the worker holds it.
    ///
    /// # Errors
    /// When shared data cannot be read or written.
    pub fn press(&mut self, host: &impl Host, duty: Duty, now: Instant) -> Result<bool, HostError> {
        let value = host.shared(&self.key)?;
        let expect = value
            .as_ref()
            .map_or(Expect::Absent, |value| Expect::Version(value.version));
        // One that cannot be read has no holder.
        let held = value.and_then(|value| Lease::decode(&value.bytes));
        let mine = held.is_some_and(|lease| lease.holder == self.worker && now < lease.until);
        let gives_up = mine
            && duty == Duty::Serving
            && self
                .offered_at
                .is_none_or(|at| now.saturating_since(at) >= OFFER_EVERY);
        if let Some(lease) = held
            && !mine
            && now < lease.until + courtesy(duty)
            // A clock that jumped back must not make it last.
            && lease.until.saturating_since(now) <= self.span
        {
            return Ok(false);
        }
        let lease = Lease {
            holder: self.worker,
            until: if gives_up { now } else { now + self.span },
        };
        if gives_up {
            self.offered_at = Some(now);
        }
        Ok(host.set_shared(&self.key, &lease.encode(), expect)? == WriteResult::Done && !gives_up)
    }
}

const fn courtesy(duty: Duty) -> Duration {
    match duty {
        Duty::Idle => Duration::ZERO,
        Duty::Serving => COURTESY,
    }
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

    struct Worker(FakeHost, LeaseClaim);

    impl Worker {
        fn new(host: &FakeHost, number: u64) -> Self {
            Self(
                host.clone(),
                LeaseClaim::new("lease".to_owned(), number, SPAN),
            )
        }

        fn press(&mut self, duty: Duty, millis: u64) -> bool {
            let now = Instant::from_nanos(millis * 1_000_000);
            self.1.press(&self.0, duty, now).unwrap()
        }

        fn leads_at(&mut self, millis: u64) -> bool {
            self.press(Duty::Idle, millis)
        }
    }

    #[test]
    fn one_worker_leads_until_it_stops_renewing() {
        let host = FakeHost::default();
        let (mut one, mut other) = (Worker::new(&host, 1), Worker::new(&host, 2));
        assert!(one.leads_at(0));
        assert!(!other.leads_at(100));
        assert!(one.leads_at(400));
        assert!(!other.leads_at(899));
        assert!(other.leads_at(900), "the lease ran out");
        assert!(!one.leads_at(901), "and its holder has lost it");
    }

    #[test]
    fn a_worker_with_requests_hands_over_to_one_without() {
        let host = FakeHost::default();
        let (mut one, mut other) = (Worker::new(&host, 1), Worker::new(&host, 2));
        assert!(one.press(Duty::Serving, 0));
        assert!(!one.press(Duty::Serving, 100), "offered");
        assert!(!one.press(Duty::Serving, 200), "courtesy");
        assert!(other.press(Duty::Idle, 250));
        assert!(!one.press(Duty::Serving, 700));
    }

    #[test]
    fn a_worker_with_requests_leads_when_nobody_else_does() {
        let host = FakeHost::default();
        let mut one = Worker::new(&host, 1);
        assert!(one.press(Duty::Serving, 0));
        assert!(!one.press(Duty::Serving, 100));
        assert!(one.press(Duty::Serving, 400), "no other worker wanted it");
        assert!(one.press(Duty::Serving, 500));
        assert!(one.press(Duty::Serving, 800), "no second offer so soon");
    }

    #[test]
    fn a_clock_that_jumped_back_does_not_lock_the_lease() {
        let host = FakeHost::default();
        assert!(Worker::new(&host, 1).leads_at(1_000_000));
        assert!(Worker::new(&host, 2).leads_at(0));
    }

    #[test]
    fn a_malformed_lease_is_taken_over() {
        let host = FakeHost::default();
        host.set_shared("lease", b"?", Expect::Anything).unwrap();
        assert!(Worker::new(&host, 2).leads_at(0));
    }
}
