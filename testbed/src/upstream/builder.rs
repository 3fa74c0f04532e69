//! Describes an upstream to be started.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderMap;

use super::answer::{RequestHead, Script, ScriptFor};
use super::outbound::Outbound;
use super::pauses::EndpointPlace;
use super::quota::Quotas;
use super::witness::Witness;
use tidegate_sim::profile::{Behaviour, ServiceTime};

/// Describes an upstream to be started.
#[derive(Debug)]
pub struct UpstreamBuilder {
    pub(super) name: String,
    pub(super) behaviour: Behaviour,
    pub(super) script: Option<ScriptFor>,
    pub(super) seed: u64,
    pub(super) place: EndpointPlace,
    pub(super) quotas: Option<Arc<Quotas>>,
    pub(super) outbound: Option<Arc<Outbound>>,
    pub(super) port: u16,
    pub(super) witness: Option<Witness>,
}

impl UpstreamBuilder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            behaviour: Behaviour::default(),
            script: None,
            seed: 1,
            place: EndpointPlace { index: 0, count: 1 },
            quotas: None,
            outbound: None,
            port: 0,
            witness: None,
        }
    }

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

    /// Answers single requests as `script` says; where it returns `None`, the behavior decides.
    #[must_use]
    pub fn script(
        mut self,
        script: impl Fn(&RequestHead) -> Option<Script> + Send + Sync + 'static,
    ) -> Self {
        self.script = Some(ScriptFor::new(script));
        self
    }

    /// Seed of its service times and failures (default 1).
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes it endpoint `index` of `count` (default: the only one); pauses are staggered by this.
    #[must_use]
    pub const fn endpoint(mut self, index: u32, count: u32) -> Self {
        self.place = EndpointPlace { index, count };
        self
    }

    /// What its service grants clients (default: no quotas).
    #[must_use]
    pub fn quotas(mut self, quotas: Arc<Quotas>) -> Self {
        self.quotas = Some(quotas);
        self
    }

    /// The calls that its requests make to other services (default: none).
    #[must_use]
    pub fn outbound(mut self, outbound: Arc<Outbound>) -> Self {
        self.outbound = Some(outbound);
        self
    }

    /// Listens on this port of 127.0.0.1 (default 0: one that the kernel chooses).
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Calls `witness` with the headers of every request whose answer without a failure is handed to the connection.
    #[must_use]
    pub fn witness(mut self, witness: impl Fn(&HeaderMap) + Send + Sync + 'static) -> Self {
        self.witness = Some(Witness::new(witness));
        self
    }
}
