//! Ports for servers that need a fixed one.
//!
//! The API server, etcd and istiod do not report which port the kernel chose. The kernel may give a port that is free now to
//! any socket that asks for port 0, so these ports are below its range; a server can also be restarted on its port.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;

/// Below the kernel's range (from 32768 by default), above the well-known ports.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A free port of 127.0.0.1; this process gets each port only once.
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
