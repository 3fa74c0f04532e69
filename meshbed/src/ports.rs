//! Ports for servers that must be told theirs.
//!
//! Neither the API server nor etcd or istiod can be asked which port the kernel chose. A port that was
//! free a moment ago may be given to any socket that asks for port 0, so these are taken from below the
//! range from which the kernel gives; a server can also be stopped and started again on its port.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;

/// Below what the kernel gives (32768 by default), above what services are known by.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A free port of 127.0.0.1, which this process gets only once.
#[must_use]
pub fn free() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = rand::random_range(RANGE);
        let mut given = GIVEN
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if !given.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            given.insert(port);
            return port;
        }
    }
}
