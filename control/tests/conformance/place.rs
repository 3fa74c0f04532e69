//! A gateway with a service of one place behind it, in a namespace of its own; all three go by one name.

use tidegate_meshbed::Proxy;
use tidegate_testbed::upstream::Upstream;

use crate::door::{self, Door, Held};
use crate::mesh::{Mesh, is_guarded};

/// What is there before any policy is.
pub(crate) struct Place {
    pub(crate) envoy: Proxy,
    pub(crate) door: Door,
    pub(crate) upstream: Upstream,
}

impl Place {
    /// Starts it: the label of the gateway's Pod, by which policies find it, is `app: <name>`.
    pub(crate) async fn start(mesh: &Mesh, name: &str) -> Self {
        let host = format!("{name}.example");
        mesh.world.namespace(name).await;
        let upstream = door::upstream(name).await;
        mesh.register(name, &host, &upstream).await;
        let envoy = mesh.gateway(name, name, &host).await;
        let door = Door::at(envoy.addr());
        Self {
            envoy,
            door,
            upstream,
        }
    }

    /// Waits until the filter runs, takes the place, and sees that others are shed with `status`.
    pub(crate) async fn guarded(&self, status: u16) -> Held {
        is_guarded(&self.envoy).await;
        self.taken(status).await
    }

    /// Takes the place, and sees that others are shed with `status`.
    pub(crate) async fn taken(&self, status: u16) -> Held {
        self.door.is_taken(&self.upstream, status).await
    }
}
