//! The incident page in a mesh: is it Tidegate, let all requests pass, shed again.
//!
//! The commands are read from the page. All the time a request holds the only place, so that a proxy that is still guarded sheds.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tidegate_meshbed::{MeshNode, MeshProxy, ProxyRole, ports, until, until_within};
use tidegate_testbed::upstream::Upstream;

use crate::door::{self, HeldRequests, MeshDoor, one_at_a_time};
use crate::incident_page::{PageCommand, SWITCH, annotations, stats_queries};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, HOME, is_guarded};

/// The namespace, the policy and the app of the page's commands.
const NAMESPACE: &str = "shop";
const APP: &str = "checkout";
/// The page promises seconds; the rest is for a busy machine.
const SECONDS: Duration = Duration::from_secs(30);
/// As many requests must pass in a row.
const REQUESTS: usize = 50;

/// A workload behind a sidecar.
struct Checkout {
    mesh: ConformanceMesh,
    envoy: MeshProxy,
    door: MeshDoor,
    workload: Upstream,
    /// Has the only place.
    held: HeldRequests,
}

impl Checkout {
    /// Starts both, without a policy.
    async fn start() -> Self {
        let mesh = ConformanceMesh::start().await.unwrap();
        mesh.world.namespace(NAMESPACE).await;
        let workload = door::upstream(APP).await;
        let node = MeshNode::new(ProxyRole::Sidecar, NAMESPACE, APP);
        let inbound = ports::free();
        mesh.apply(NAMESPACE, &node.pod()).await;
        let sidecar = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Sidecar", "metadata": {"name": APP},
            "spec": {
                "workloadSelector": {"labels": node.labels},
                "ingress": [{
                    "port": {"number": inbound, "name": "http", "protocol": "HTTP"},
                    "bind": "127.0.0.1", "captureMode": "NONE",
                    "defaultEndpoint": workload.addr().to_string(),
                }],
                "egress": [{"hosts": ["~/*"]}],
            },
        });
        mesh.apply(NAMESPACE, &sidecar).await;
        let envoy = mesh.proxy(&node).await;
        let door = MeshDoor::at(([127, 0, 0, 1], inbound).into());
        door.answers(200).await;
        Self {
            mesh,
            envoy,
            door,
            workload,
            held: HeldRequests::none(),
        }
    }

    /// What the page asks the proxy first, and sees.
    async fn stats(&self) -> String {
        self.answer(0).await
    }

    /// The answer to the page's `number`-th question, which it asks with `curl` and through `pilot-agent`.
    async fn answer(&self, number: usize) -> String {
        let queries = stats_queries();
        let pairs: Vec<_> = queries.chunks(2).collect();
        let [direct, by_agent] = pairs[number] else {
            panic!("the page asks a proxy with {queries:?}");
        };
        assert_eq!(direct, by_agent, "both ways ask the same");
        self.envoy.admin().text(direct).await.unwrap()
    }

    /// Whether the page's proof says that the switch has arrived.
    async fn is_disabled(&self) -> bool {
        let info = self.answer(1).await;
        info.lines()
            .any(|line| line.contains("tidegate_mode=.=disabled") && line.ends_with(": 1"))
    }

    /// How many requests were shed, by that answer.
    async fn shed(&self) -> u64 {
        let stats = self.stats().await;
        let of_sheds = stats
            .lines()
            .filter(|line| line.contains("tidegate_requests_shed_total"));
        of_sheds
            .map(|line| line.rsplit_once(": ").unwrap().1.parse::<u64>().unwrap())
            .sum()
    }

    /// Sends the command, which is the page's `number`-th patch of the resource.
    async fn patch(&self, resource: &str, number: usize) {
        let commands = PageCommand::all_for(resource);
        let admin = &self.mesh.world.admin;
        commands[number].send(admin, NAMESPACE).await;
    }

    async fn annotate_lease(&self, value: Option<&str>) {
        let leases: Api<Lease> = Api::namespaced(self.mesh.world.admin.clone(), HOME);
        let patch = Patch::Merge(json!({"metadata": {"annotations": {SWITCH: value}}}));
        let how = PatchParams::default();
        leases.patch("tidegate", &how, &patch).await.unwrap();
    }

    /// Puts the policy to `mode: enforce`, the last step back.
    async fn enforce(&self) {
        let policies = self.mesh.world.policies(NAMESPACE);
        let patch = Patch::Merge(json!({"spec": {"mode": "enforce"}}));
        let how = PatchParams::default();
        policies.patch(APP, &how, &patch).await.unwrap();
    }

    /// Waits until the place is taken and all other requests are shed.
    async fn sheds(&mut self) {
        // A request that holds the place already would have this one shed.
        self.held = HeldRequests::none();
        self.door.answers(200).await;
        self.held = self.door.is_taken(&self.workload, SHED).await;
    }

    /// Waits until requests pass and are counted as such that would be shed.
    async fn observes(&mut self) {
        let would = "/stats?filter=tidegate_requests_would_shed_total";
        until("what would be shed is counted", async || {
            // One that is older than the change may not count.
            self.held = self.door.hold(&self.workload).await;
            self.door.status().await == 200
                && !self.envoy.admin().text(would).await.unwrap().is_empty()
        })
        .await;
    }

    /// Waits until the switch has arrived at all workers: the proxy says so, many requests in a row pass, and sheds no longer grow.
    async fn lets_all_pass(&self) {
        until_within(SECONDS, "all requests pass", async || {
            let before = self.shed().await;
            for _ in 0..REQUESTS {
                if self.door.status().await != 200 {
                    return false;
                }
            }
            self.is_disabled().await && self.shed().await == before
        })
        .await;
    }
}

pub(crate) async fn the_commands_of_the_incident_page_let_all_requests_pass_and_shed_again(
    _: Arc<ConformanceMesh>,
) {
    // It has a mesh of its own, because it disables all policies and kills the service.
    let mut checkout = Checkout::start().await;
    assert_eq!(checkout.stats().await, "", "it is not Tidegate");
    let settings = one_at_a_time(SHED);
    checkout.mesh.apply_policy(NAMESPACE, APP, &settings).await;
    is_guarded(&checkout.envoy).await;

    // It is Tidegate, and the page's query tells the reason.
    checkout.sheds().await;
    until("the page's query shows what is shed", async || {
        checkout.shed().await > 0
    })
    .await;
    let stats = checkout.stats().await;
    assert!(stats.contains("tidegate_reason=.=limit"), "{stats}");

    // One policy is disabled, and comes back step by step.
    checkout.patch("breakerpolicy", 0).await;
    checkout.lets_all_pass().await;
    checkout.patch("breakerpolicy", 1).await;
    checkout.observes().await;
    checkout.enforce().await;
    checkout.sheds().await;

    // All are disabled by the annotation.
    let [set, removed] = annotations().try_into().unwrap();
    checkout.annotate_lease(set.as_deref()).await;
    checkout.lets_all_pass().await;
    checkout.annotate_lease(removed.as_deref()).await;
    checkout.sheds().await;

    // Without the service, the switch goes into Istio's object by hand.
    checkout.mesh.replica.process.kill();
    checkout.patch("trafficextension", 0).await;
    checkout.lets_all_pass().await;
    checkout.patch("trafficextension", 1).await;
    checkout.sheds().await;
}
