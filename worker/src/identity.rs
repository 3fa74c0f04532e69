//! A number for this VM that no other VM of the process has.
//!
//! VMs of all workers start from the same memory, and none has a source of randomness of its own. A counter in
//! shared data tells them apart; the clock, mixed in, makes numbers differ from proxy to proxy, because they also
//! seed the jitter.

use tidegate_core::{Instant, mix};

use crate::api::{Expect, Host, HostError, WriteResult};

/// Attempts to count up while other VMs do the same.
const ATTEMPTS: usize = 64;

/// The number of this VM, from the counter at `key`. Without shared data the clock alone has to do.
///
/// # Errors
/// What went wrong with shared data, beside a number that is probably unique.
pub fn worker_number(host: &impl Host, key: &str, now: Instant) -> (u64, Result<(), HostError>) {
    let (serial, result) = match next_serial(host, key) {
        Ok(serial) => (serial, Ok(())),
        Err(error) => (0, Err(error)),
    };
    // 0 marks a free place in the exchange.
    (mix(serial ^ mix(now.as_nanos())).max(1), result)
}

fn next_serial(host: &impl Host, key: &str) -> Result<u64, HostError> {
    for _ in 0..ATTEMPTS {
        let value = host.shared(key)?;
        let expect = value
            .as_ref()
            .map_or(Expect::Absent, |value| Expect::Version(value.version));
        let before = value
            .and_then(|value| value.bytes.first_chunk::<8>().copied())
            .map_or(0, u64::from_le_bytes);
        let serial = before.wrapping_add(1);
        if host.set_shared(key, &serial.to_le_bytes(), expect)? == WriteResult::Done {
            return Ok(serial);
        }
    }
    Err(HostError::Malformed {
        call: "proxy_set_shared_data",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;
    use std::collections::BTreeSet;

    #[test]
    fn vms_that_start_at_the_same_instant_differ() {
        let host = FakeHost::default();
        let numbers: BTreeSet<u64> = (0..100)
            .map(|_| worker_number(&host, "serial", Instant::ZERO).0)
            .collect();
        assert_eq!(numbers.len(), 100);
        assert!(!numbers.contains(&0));
    }

    #[test]
    fn without_shared_data_there_is_a_number_all_the_same() {
        let host = FakeHost::default();
        host.break_shared_data();
        let (number, result) = worker_number(&host, "serial", Instant::from_nanos(5));
        assert_ne!(number, 0);
        assert!(result.is_err());
    }
}
