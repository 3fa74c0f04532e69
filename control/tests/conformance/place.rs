//! A gateway and, behind it, a service with one place, in a namespace of their own. All three have the same name.

use tidegate_meshbed::MeshProxy;
use tidegate_testbed::upstream::Upstream;

use crate::door::{self, HeldRequests, MeshDoor};
use crate::mesh::{ConformanceMesh, is_guarded};

/// The gateway and the service before a policy applies.
pub(crate) struct TestNamespace {
    pub(crate) envoy: MeshProxy,
    pub(crate) door: MeshDoor,
    pub(crate) upstream: Upstream,
}

impl TestNamespace {
    /// Starts both. Policies find the gateway's Pod by its label `app: <name>`.
    pub(crate) async fn start(mesh: &ConformanceMesh, name: &str) -> Self {
        let host = format!("{name}.example");
        mesh.world.namespace(name).await;
        let upstream = door::upstream(name).await;
        mesh.register(name, &host, &upstream).await;
        let envoy = mesh.gateway(name, name, &host).await;
        let door = MeshDoor::at(envoy.addr());
        Self {
            envoy,
            door,
            upstream,
        }
    }

    /// Waits until the filter runs, takes the place, and checks that other requests are shed with `status`.
    pub(crate) async fn guarded(&self, status: u16) -> HeldRequests {
        is_guarded(&self.envoy).await;
        self.taken(status).await
    }

    /// Takes the place, and checks that other requests are shed with `status`.
    pub(crate) async fn taken(&self, status: u16) -> HeldRequests {
        self.door.is_taken(&self.upstream, status).await
    }
}
