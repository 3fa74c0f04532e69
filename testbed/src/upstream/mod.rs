//! A programmable service: slots, a waiting line, a distribution of service times, and every way to fail.
//!
//! A request that is complete gets a slot, works, and is answered; a body may follow and hold the slot on.
//! Served over HTTP/1.1 and HTTP/2 on one port. Service time is waited, not
//! computed, so that a hundred upstreams fit on one core. What it does is a
//! [`Behaviour`] that can be changed at any moment, or a script of the test's own
//! for single requests.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use tidegate_sim::profile::{Change, Mode};
//! use tidegate_testbed::upstream::Upstream;
//!
//! let upstream = Upstream::builder("main").start().await?;
//! upstream.change(&Change::mode(Mode::Fail));
//! assert_eq!(upstream.counts().received, 0);
//! # Ok(()) }
//! ```

mod answer;
mod behave;
mod connections;
mod counts;
mod handler;
mod listen;
mod pauses;
mod quota;
#[cfg(test)]
mod socket_tests;
mod station;
mod witness;
mod work;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderMap;
use tokio::task::JoinHandle;

use tidegate_sim::profile::{Behaviour, Change, ServiceTime};
use tidegate_sim::scenario::TimedChange;

pub use answer::Script;
pub use counts::Counts;
pub use handler::RequestHead;
pub use quota::Quotas;

use handler::Service;
use pauses::Place;
use witness::Witness;

/// A running upstream; dropping it closes its port and connections.
#[derive(Debug)]
pub struct Upstream {
    addr: SocketAddr,
    service: Arc<Service>,
    listener: JoinHandle<()>,
}

/// What an upstream is to be.
#[derive(Debug)]
pub struct UpstreamBuilder {
    name: String,
    behaviour: Behaviour,
    script: Option<answer::ScriptFor>,
    seed: u64,
    place: Place,
    quotas: Option<Arc<Quotas>>,
    port: u16,
    witness: Option<Witness>,
}

impl UpstreamBuilder {
    /// How it behaves at the start (default: the standard upstream).
    #[must_use]
    pub fn behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// Its service time is always `service`, with `slots` slots.
    #[must_use]
    pub fn constant(self, slots: u32, service: Duration) -> Self {
        let service = ServiceTime::constant(service);
        self.behaviour(Behaviour {
            slots,
            service,
            ..Behaviour::default()
        })
    }

    /// Answers single requests as `script` says; `None` from it means: as the behaviour says.
    #[must_use]
    pub fn script(
        mut self,
        script: impl Fn(&RequestHead) -> Option<Script> + Send + Sync + 'static,
    ) -> Self {
        self.script = Some(answer::ScriptFor::new(script));
        self
    }

    /// Seed of its service times and failures (default 1).
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// It is the endpoint `index` of `count` (default: the only one), by which pauses are spread.
    #[must_use]
    pub const fn endpoint(mut self, index: u32, count: u32) -> Self {
        self.place = Place { index, count };
        self
    }

    /// What its service grants clients (default: no quotas).
    #[must_use]
    pub fn quotas(mut self, quotas: Arc<Quotas>) -> Self {
        self.quotas = Some(quotas);
        self
    }

    /// Listens on this port of 127.0.0.1 (default 0: one that the kernel chooses).
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Tells `witness` of every request, by its headers, whose answer without a failure is handed to the connection.
    #[must_use]
    pub fn witness(mut self, witness: impl Fn(&HeaderMap) + Send + Sync + 'static) -> Self {
        self.witness = Some(Witness::new(witness));
        self
    }

    /// Opens a port on 127.0.0.1 and serves.
    ///
    /// # Errors
    /// When no port can be had.
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

impl Upstream {
    /// Describes an upstream to be started.
    #[must_use]
    pub fn builder(name: &str) -> UpstreamBuilder {
        UpstreamBuilder {
            name: name.to_owned(),
            behaviour: Behaviour::default(),
            script: None,
            seed: 1,
            place: Place { index: 0, count: 1 },
            quotas: None,
            port: 0,
            witness: None,
        }
    }

    /// An upstream whose service time is always `service`, with `slots` slots.
    ///
    /// # Errors
    /// When no port can be had.
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

    /// Acts out a timeline counted from `start`, as pauses are; returns after the last change.
    pub async fn follow(&self, timeline: &[TimedChange], start: tokio::time::Instant) {
        self.service.begin(start);
        for change in timeline {
            tokio::time::sleep_until(start + change.at).await;
            self.change(&change.change);
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.listener.abort();
        self.service.close();
    }
}
