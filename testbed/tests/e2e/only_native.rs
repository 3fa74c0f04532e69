//! Features of the native module alone: load reports in responses, histograms, and counts by upstream host.

use std::time::Duration;

use serde_json::json;
use tidegate_testbed::client::{Call, CallReply};
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, PushOutcome};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit};
use crate::load::{Crowd, in_turn, together};
use crate::stage::{Stage, ensure};
use crate::turn;

const REPORT: &str = "endpoint-load-metrics";
/// The load report headers that the upstream sends.
const SENT: [&str; 2] = [REPORT, "endpoint-load-metrics-bin"];

/// An upstream that sends its own load reports; `/held` is not answered.
async fn reporting() -> Upstream {
    let script = |head: &tidegate_testbed::upstream::RequestHead| {
        let answer = SENT.into_iter().fold(Script::status(200), |answer, name| {
            answer.header(name, "TEXT cpu_utilization:0.5")
        });
        Some(if head.path == "/held" {
            Script::Hang
        } else {
            answer
        })
    };
    Upstream::builder("main")
        .script(script)
        .start()
        .await
        .unwrap()
}

async fn stage(upstream: &Upstream, document: &serde_json::Value) -> Stage {
    let turn = turn::shared().await;
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(document).pushed());
    Stage::start(turn, envoy).await
}

fn reports(reply: &CallReply) -> [Option<&str>; 2] {
    SENT.map(|name| reply.header(name))
}

/// Whether the reply has the proxy's report, and no other.
fn has_own(reply: &CallReply) -> bool {
    let [own, other] = reports(reply);
    other.is_none() && own.is_some_and(|it| it.starts_with("TEXT application_utilization:"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn load_reports_pass_are_removed_or_are_the_proxys_own() {
    let upstream = reporting().await;
    let mut stage = stage(&upstream, &config(json!({}))).await;
    let caller = stage.caller();
    let reply = caller.get("/").await.unwrap();
    let sent = Some("TEXT cpu_utilization:0.5");
    ensure!(stage, reports(&reply) == [sent, sent], "{reply:?}");

    let removing = config(json!({"native": {"loadReports": "remove"}})).to_string();
    let outcome = stage.envoy.push(&removing).await.unwrap();
    assert_eq!(outcome, PushOutcome::Accepted);
    let reply = caller.get("/").await.unwrap();
    ensure!(stage, reports(&reply) == [None, None], "{reply:?}");

    let setting = config(json!({"native": {"loadReports": "set"}})).to_string();
    let outcome = stage.envoy.push(&setting).await.unwrap();
    assert_eq!(outcome, PushOutcome::Accepted);
    stage
        .until("responses have reports of the proxy", async || {
            let reply = caller.get("/").await.unwrap();
            has_own(&reply)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_shed_request_has_a_load_report() {
    let upstream = reporting().await;
    let document = fixed_limit(2, json!({"native": {"loadReports": "set"}}));
    let stage = stage(&upstream, &document).await;
    let caller = stage.caller();
    stage
        .until("there is something to tell", async || {
            let reply = caller.get("/").await.unwrap();
            reply.status == 200 && has_own(&reply)
        })
        .await;
    let crowd = Crowd::send(&caller, &Call::get("/held"), 2);
    stage.until_sum("in_flight", "main", 2).await;
    stage
        .until("a shed request has a report", async || {
            let reply = caller.get("/").await.unwrap();
            reply.status == 503 && has_own(&reply)
        })
        .await;
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn latencies_are_histograms_of_envoy() {
    let upstream = reporting().await;
    let document = config(json!({"native": {"histograms": true}}));
    let stage = stage(&upstream, &document).await;
    // The histogram lacks the latencies that a worker measured before its first tick with the upstream. So the test
    // repeats its requests.
    let caller = stage.caller();
    let counted = async || {
        let admin = stage.envoy.admin();
        let text = admin.text("/stats/prometheus").await.unwrap();
        let line = text.lines().find(|line| {
            line.starts_with("tidegate_latency_ms_count{")
                && line.contains("tidegate_upstream=\"main\"")
        })?;
        line.rsplit(' ').next()?.parse::<u64>().ok()
    };
    stage
        .until("there is a histogram", async || {
            in_turn(&caller, &Call::get("/"), 5).await;
            counted().await.is_some_and(|count| count > 10)
        })
        .await;
}

/// Endpoints that answer, fail, break the connection, and are late, in one cluster, with their counts.
struct Hosts {
    stage: Stage,
    upstreams: [Upstream; 4],
}

impl Hosts {
    async fn start(most: u32) -> Self {
        // The objective's target is 300 ms.
        let late = Script::after(Duration::from_millis(400));
        let scripts = [
            Script::status(200),
            Script::status(500),
            Script::Reset,
            late,
        ];
        let [good, failing, broken, late] = scripts.map(|script| {
            let script = move |_: &tidegate_testbed::upstream::RequestHead| Some(script.clone());
            Upstream::builder("main").script(script).start()
        });
        let upstreams = [good.await, failing.await, broken.await, late.await].map(Result::unwrap);
        let [first, others @ ..] = upstreams.each_ref().map(Upstream::addr);
        let cluster = Cluster::new("main", first);
        let cluster = others.into_iter().fold(cluster, Cluster::endpoint);
        let document = fixed_limit(1_000, json!({"native": {"hosts": most}}));
        let envoy = Envoy::builder()
            .cluster(cluster)
            .plugin(Plugin::tidegate(&document).pushed());
        let stage = Stage::start(turn::shared().await, envoy).await;
        Self { stage, upstreams }
    }

    /// Sends requests to all of them.
    async fn send(&self) {
        let tally = together(&self.stage.caller(), &Call::get("/"), 60).await;
        ensure!(self.stage, tally.shed == 0, "{tally:?}");
    }

    /// Requests that the endpoints received.
    fn received(&self) -> [u64; 4] {
        self.upstreams.each_ref().map(|it| it.counts().received)
    }

    /// The metric for each endpoint.
    async fn counted(&self, name: &str) -> [u64; 4] {
        let metrics = self.stage.metrics().await;
        self.upstreams.each_ref().map(|upstream| {
            let address = upstream.addr().to_string();
            let value = metrics.value(name, "main", &[("host", &address)]);
            value.unwrap_or_default()
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn counts_by_host_are_those_of_the_hosts() {
    let mut hosts = Hosts::start(10).await;
    hosts.send().await;
    let received = hosts.received();
    assert!(received.iter().all(|count| *count > 0), "{received:?}");
    let stage = &hosts.stage;
    stage
        .until("each host has its requests", async || {
            hosts.counted("host_requests_total").await == received
        })
        .await;
    let [_, failing, broken, late] = received;
    let failures = hosts.counted("host_failures_total").await;
    ensure!(stage, failures == [0, failing, broken, 0], "{failures:?}");
    let slow = hosts.counted("host_slow_total").await;
    ensure!(stage, slow[3] == late, "{slow:?}, {late} were late");
    ensure!(stage, slow[1] == 0 && slow[2] == 0, "{slow:?}");

    // Without the option, no more requests are counted.
    let without = fixed_limit(1_000, json!({})).to_string();
    let outcome = hosts.stage.envoy.push(&without).await.unwrap();
    assert_eq!(outcome, PushOutcome::Accepted);
    hosts.send().await;
    let all = hosts.received().iter().sum();
    hosts.stage.until_sum("requests_total", "main", all).await;
    let counted = hosts.counted("host_requests_total").await;
    ensure!(hosts.stage, counted == received, "{counted:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn hosts_beyond_the_bound_are_counted_together() {
    let hosts = Hosts::start(2).await;
    hosts.send().await;
    let received: u64 = hosts.received().iter().sum();
    hosts
        .stage
        .until_sum("host_requests_total", "main", received)
        .await;
    let counted = hosts.counted("host_requests_total").await;
    let named = counted.iter().filter(|count| **count > 0).count();
    let metrics = hosts.stage.metrics().await;
    let others = metrics.value("host_requests_total", "main", &[("host", "_overflow")]);
    let named_sum: u64 = counted.iter().sum();
    ensure!(
        hosts.stage,
        named == 2 && others == Some(received - named_sum),
        "{counted:?} and {others:?} of {received}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_bad_option_is_rejected_and_the_configuration_before_stays() {
    let upstream = reporting().await;
    let mut stage = stage(
        &upstream,
        &config(json!({"native": {"loadReports": "remove"}})),
    )
    .await;
    let bad = config(json!({"native": {"loadReports": "on"}})).to_string();
    let outcome = stage.envoy.push(&bad).await.unwrap();
    assert_eq!(outcome, PushOutcome::Rejected);
    let said = stage.envoy.log();
    assert!(said.contains("native.loadReports: found \"on\""), "{said}");
    let reply = stage.caller().get("/").await.unwrap();
    ensure!(stage, reports(&reply) == [None, None], "{reply:?}");
}

/// The WebAssembly filter rejects the same document.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_native_module_takes_its_options() {
    let upstream = reporting().await;
    let turn = turn::shared().await;
    let module = tidegate_testbed::envoy::repository().join("dist/tidegate.wasm");
    let plugin = Plugin::tidegate(&config(json!({}))).module(module).pushed();
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(plugin);
    let mut stage = Stage::start(turn, envoy).await;
    let options = json!({
        "loadReports": "set",
        "histograms": true,
        "hosts": 10,
        "snapshot": {"directory": "/var/lib/tidegate"},
    });
    let options = config(json!({"native": options})).to_string();
    let outcome = stage.envoy.push(&options).await.unwrap();
    assert_eq!(outcome, PushOutcome::Rejected);
    let said = stage.envoy.log();
    for key in [
        "native.loadReports",
        "native.histograms",
        "native.hosts",
        "native.snapshot",
    ] {
        let line = format!("{key}: found ");
        assert!(said.contains(&line), "{said}");
    }
    assert!(
        said.contains("only the native module can do this"),
        "{said}"
    );
}
