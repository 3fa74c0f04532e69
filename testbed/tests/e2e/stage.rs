//! An Envoy under test, and how a test waits for things and fails.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::{
    self, AccessLine, Cluster, Envoy, EnvoyBuilder, Metrics, Plugin, release_module,
};
use tidegate_testbed::upstream::{Script, Upstream};
use tokio::time::{Instant, sleep};

use crate::turn::Turn;

/// Longest time that a test waits for anything that must happen.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Interval between two polls.
const POLL: Duration = Duration::from_millis(20);

/// Number of bytes shown from the end of Envoy's log.
const LOG_TAIL: usize = 4_000;

/// Fails the test with Envoy's log and stats unless the condition holds.
macro_rules! ensure {
    ($stage:expr, $condition:expr, $($message:tt)+) => {
        let holds: bool = $condition;
        if !holds {
            $stage.fail(&format!($($message)+)).await;
        }
    };
}
pub(crate) use ensure;

/// A running Envoy and its test's turn.
pub(crate) struct Stage {
    pub(crate) envoy: Envoy,
    _turn: Turn,
}

impl Stage {
    /// Starts what `builder` describes.
    pub(crate) async fn start(turn: Turn, builder: EnvoyBuilder) -> Self {
        require_parts();
        match builder.start().await {
            Ok(envoy) => Self { envoy, _turn: turn },
            Err(error) => panic!("{}", chain(&error)),
        }
    }

    /// Calls over HTTP/1.1.
    pub(crate) fn caller(&self) -> Caller {
        Caller::http1(self.envoy.addr())
    }

    /// The plugin's metrics now.
    pub(crate) async fn metrics(&self) -> Metrics {
        match self.envoy.admin().tidegate().await {
            Ok(metrics) => metrics,
            Err(error) => self.fail(&chain(&error)).await,
        }
    }

    /// Sum of a metric over its labels, of one upstream or (empty) of all.
    pub(crate) async fn sum(&self, name: &str, upstream: &str) -> u64 {
        self.metrics().await.sum(name, upstream)
    }

    /// How often breakers of `upstream` opened.
    pub(crate) async fn opened(&self, upstream: &str) -> u64 {
        let metrics = self.metrics().await;
        let open = [("to", "open")];
        metrics
            .value("breaker_transitions_total", upstream, &open)
            .unwrap_or(0)
    }

    /// Waits until `is_so` or fails.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let started = Instant::now();
        while !is_so().await {
            if started.elapsed() > BOUND {
                self.fail(&format!("not within {BOUND:?}: {what}")).await;
            }
            sleep(POLL).await;
        }
    }

    /// Waits until the sum of a metric over `upstream` (empty: over all) is `wanted`.
    pub(crate) async fn until_sum(&self, name: &str, upstream: &str, wanted: u64) {
        let what = format!("{name} of {upstream:?} is {wanted}");
        self.until(&what, async || self.sum(name, upstream).await == wanted)
            .await;
    }

    /// The lines of the access log, once there are `count`.
    pub(crate) async fn access_lines(&self, count: usize) -> Vec<AccessLine> {
        self.until(&format!("{count} lines in the access log"), async || {
            self.envoy.access_log().len() >= count
        })
        .await;
        self.envoy.access_log()
    }

    /// Fails the test with everything that helps to find the cause.
    pub(crate) async fn fail(&self, message: &str) -> ! {
        let log = self.envoy.log();
        let start = log.len().saturating_sub(LOG_TAIL);
        let tail = log.get(start..).unwrap_or(&log);
        let filter = "^wasmcustom|^dynamicmodules|^wasm\\.|config_discovery|downstream_rq_(total|.xx)|upstream_rq_(total|.xx)$";
        let stats = match self.envoy.admin().stats(filter).await {
            Ok(stats) => stats
                .iter()
                .map(|(name, value)| format!("  {name}: {value}\n"))
                .collect(),
            Err(error) => chain(&error),
        };
        panic!("{message}\n--- stats\n{stats}--- end of Envoy's log\n{tail}");
    }
}

/// An upstream that answers every request with `script`.
pub(crate) async fn answering(name: &str, script: Script) -> Upstream {
    Upstream::builder(name)
        .script(move |_| Some(script.clone()))
        .start()
        .await
        .unwrap()
}

/// An Envoy with a cluster `main` and the plugin in front of it. It never times a request out.
pub(crate) fn guarding(upstream: &Upstream, document: &Value) -> EnvoyBuilder {
    Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(document))
        .route_timeout(Duration::ZERO)
}

/// An Envoy that holds exactly as many requests as a limit says, also of a few calls at once. It has one worker: a worker that is interrupted
/// between raising the common count and reading it makes the others shed for some milliseconds.
pub(crate) fn exact() -> EnvoyBuilder {
    Envoy::builder()
        .concurrency(1)
        .route_timeout(Duration::ZERO)
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Fails if something under test was not built.
pub(crate) fn require_parts() {
    require(&envoy::binary());
    require(&release_module());
}

/// Fails if this file does not exist.
pub(crate) fn require(path: &Path) {
    assert!(
        path.exists(),
        "{} is missing: run `make tools filter` first",
        path.display()
    );
}
