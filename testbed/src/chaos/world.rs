//! All processes of a run.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::backend::Backend;
use super::clock::WallClock;
use super::fault::UpstreamSide;
use super::proxy::ChaosProxy;
use super::service::Control;
use super::vital::Holds;

/// The processes; dropping this ends them.
#[derive(Debug)]
pub struct ChaosWorld {
    /// Envoy.
    pub proxy: ChaosProxy,
    /// The control service.
    pub control: Control,
    /// The upstreams.
    pub backends: BTreeMap<UpstreamSide, Backend>,
}

/// Resources of the processes that must not grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldResources {
    /// Envoy.
    pub envoy: Holds,
    /// The control service.
    pub control: Holds,
}

impl ChaosWorld {
    /// Starts all of them, with their files in `folder`.
    ///
    /// # Errors
    /// When one of them does not become ready.
    pub async fn start(binary: &Path, folder: &Path, clock: Option<WallClock>) -> Result<Self> {
        let mut backends = BTreeMap::new();
        for side in UpstreamSide::ALL {
            backends.insert(side, Backend::start(side, folder).await?);
        }
        let control = Control::start(binary, folder, clock).await?;
        let addrs: Vec<_> = backends
            .iter()
            .map(|(side, backend)| (*side, backend.addr()))
            .collect();
        let proxy = ChaosProxy::start(&addrs, control.xds(), control.clock()).await?;
        Ok(Self {
            proxy,
            control,
            backends,
        })
    }

    /// The upstream of a side.
    ///
    /// # Errors
    /// Never, as both were started.
    pub fn backend(&mut self, side: UpstreamSide) -> Result<&mut Backend> {
        self.backends.get_mut(&side).context("no such upstream")
    }

    /// The requests that both upstreams answered since the last call: numbers, and times in microseconds.
    ///
    /// # Errors
    /// When a ledger cannot be read.
    pub fn answered(&mut self) -> Result<BTreeMap<u64, u64>> {
        let mut all = BTreeMap::new();
        for backend in self.backends.values_mut() {
            all.append(&mut backend.answered()?);
        }
        Ok(all)
    }

    /// The resources that the processes hold now.
    ///
    /// # Errors
    /// When one of them has ended.
    pub fn held(&self) -> Result<HeldResources> {
        Ok(HeldResources {
            envoy: Holds::of(self.proxy.envoy().pid())?,
            control: Holds::of(self.control.id())?,
        })
    }
}
