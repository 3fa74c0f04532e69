//! The service as it runs in a cluster, with the simulated API server, and with a clock that skips idle time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tidegate_control::fleet::ProxyFleet;
use tidegate_control::kube::{Health, KubeContext, KubeSettings, start};
use tidegate_control::metrics::ControlMetrics;
use tidegate_control::source::Catalog;
use tidegate_control::traffic::LiveTraffic;
use tidegate_control::xds::{Module, NativeModule, PluginTemplate};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::server::ScriptedServer;

/// The longest time on that clock that a test waits for anything.
const BOUND: Duration = Duration::from_secs(120);

pub(crate) struct TestReplica {
    pub(crate) catalog: Catalog,
    /// The standalone proxies.
    pub(crate) fleet: ProxyFleet,
    pub(crate) metrics: Arc<ControlMetrics>,
    pub(crate) health: Health,
    /// The service graph. The replica does not read one by itself.
    pub(crate) traffic: LiveTraffic,
    /// While this is true, the replica cannot reach the server.
    pub(crate) cut: Arc<AtomicBool>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl TestReplica {
    pub(crate) fn start(server: &ScriptedServer, name: &str) -> Self {
        Self::with(server, name, |_| {})
    }

    pub(crate) fn with(
        server: &ScriptedServer,
        name: &str,
        change: impl FnOnce(&mut KubeSettings),
    ) -> Self {
        let mut settings = crate::cluster::settings();
        settings.lease.identity = name.to_owned();
        change(&mut settings);
        let metrics = Arc::new(ControlMetrics::default());
        let plugin = PluginTemplate::usual(
            Module::File("/tidegate.wasm".to_owned()),
            NativeModule::Named("tidegate".to_owned()),
        );
        let fleet = ProxyFleet::new(plugin, metrics.fleet());
        let catalog = Catalog::new(None, None, fleet.clone(), metrics.sources());
        let (client, cut) = server.client(name);
        let traffic = LiveTraffic::default();
        let context = KubeContext {
            fleet: fleet.clone(),
            traffic: Some(traffic.clone()),
            catalog: catalog.clone(),
            events: metrics.kube(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let health = start(&client, settings, &context).unwrap();
        Self {
            catalog,
            fleet,
            metrics,
            health,
            traffic,
            cut,
            closing: context.closing,
            tasks: context.tasks,
        }
    }

    /// Stops the replica, and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.closing.cancel();
        self.tasks.close();
        tokio::time::timeout(BOUND, self.tasks.wait())
            .await
            .unwrap();
    }

    /// The value of a metric; 0 if there is none.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let text = self.metrics.text(&[]);
        let line = format!("tidegate_control_kube_{line} ");
        let value = text.lines().find_map(|l| l.strip_prefix(&line));
        value.map_or(0, |value| value.parse().unwrap())
    }

    pub(crate) fn policies(&self) -> usize {
        self.catalog.records().len()
    }
}

/// Waits until `is_so` is true. Fails if that takes too long.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Lets this much time pass on the clock.
pub(crate) async fn pass(time: Duration) {
    sleep(time).await;
}
