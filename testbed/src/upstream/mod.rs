//! A programmable service: slots, a waiting line, a distribution of service times, and every way to fail.
//!
//! A complete request gets a slot, works, and is answered; a body may follow and keep the slot. HTTP/1.1 and HTTP/2 are
//! served on one port. The service time is slept, not computed, so that a hundred upstreams fit on one core. An upstream
//! follows a [`Behaviour`](tidegate_sim::profile::Behaviour) that can be changed at any moment, or, for single requests, a
//! script of the test.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use tidegate_sim::profile::{Change, UpstreamMode};
//! use tidegate_testbed::upstream::Upstream;
//!
//! let upstream = Upstream::builder("main").start().await?;
//! upstream.change(&Change::mode(UpstreamMode::Fail));
//! assert_eq!(upstream.counts().received, 0);
//! # Ok(()) }
//! ```

mod answer;
mod behave;
mod builder;
mod connections;
mod counts;
mod handler;
mod listen;
mod outbound;
#[cfg(test)]
mod outbound_tests;
mod pauses;
mod quota;
#[cfg(test)]
mod socket_tests;
mod station;
mod witness;
mod work;
mod work_log;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use tidegate_sim::profile::Change;
use tidegate_sim::scenario::TimedChange;

pub use answer::{RequestHead, Script};
pub use builder::UpstreamBuilder;
pub use counts::Counts;
pub use outbound::Outbound;
pub use quota::Quotas;
pub use work_log::LoggedWork;

use handler::Service;

/// A running upstream; dropping it closes its port and connections.
#[derive(Debug)]
pub struct Upstream {
    addr: SocketAddr,
    service: Arc<Service>,
    listener: JoinHandle<()>,
}

impl Upstream {
    /// Describes an upstream to be started.
    #[must_use]
    pub fn builder(name: &str) -> UpstreamBuilder {
        UpstreamBuilder::new(name)
    }

    /// An upstream whose service time is always `service`, with `slots` slots.
    ///
    /// # Errors
    /// If no port is available.
    pub async fn constant(name: &str, slots: u32, service: Duration) -> io::Result<Self> {
        Self::builder(name).constant(slots, service).start().await
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes over the fields that `change` names, from now on.
    pub fn change(&self, change: &Change) {
        self.service.change(change);
    }

    /// What it has counted since its start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.service.counts()
    }

    /// Requests received for one path.
    #[must_use]
    pub fn received_for(&self, path: &str) -> u64 {
        self.service.received_for(path)
    }

    /// The work done since its start for requests whose origin is known ([`crate::client::headers::ORIGIN_HEADER`]).
    #[must_use]
    pub fn work(&self) -> Vec<LoggedWork> {
        self.service.work.read()
    }

    /// Plays a timeline counted from `start`, as pauses are; returns after the last change.
    pub async fn follow(&self, timeline: &[TimedChange], start: tokio::time::Instant) {
        self.service.begin(start);
        for change in timeline {
            tokio::time::sleep_until(start + change.at).await;
            self.change(&change.change);
        }
    }
}

impl UpstreamBuilder {
    /// Opens a port on 127.0.0.1 and serves.
    ///
    /// # Errors
    /// If no port is available.
    pub async fn start(self) -> io::Result<Upstream> {
        let port = self.port;
        let service = Arc::new(Service::new(self));
        let (addr, listener) = listen::listen(Arc::clone(&service), port).await?;
        Ok(Upstream {
            addr,
            service,
            listener,
        })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.listener.abort();
        self.service.close();
    }
}
