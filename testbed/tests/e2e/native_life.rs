//! The native module in the life of an Envoy: routes, listeners, redirects, its end, and validation.

use std::fs;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_supervise::Signal;
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{
    Cluster, Envoy, EnvoyBuilder, Plugin, Route, binary, native_config, native_module, repository,
    search_path,
};
use tidegate_testbed::upstream::{RequestHead, Script, Upstream};
use tokio::time::sleep;

use crate::config::fixed_limit;
use crate::load::{Crowd, is_shed};
use crate::stage::{BOUND, Stage, ensure, require};
use crate::turn;

/// The page with an example of a route's configuration.
const PAGE: &str = "docs/native.md";
const PER_ROUTE: &str = "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilterPerRoute";

/// An upstream that holds all requests except those to `/quick`.
async fn holding() -> Upstream {
    let script = |head: &RequestHead| {
        Some(match head.path.as_str() {
            "/quick" => Script::status(200),
            _ => Script::Hang,
        })
    };
    let upstream = Upstream::builder("main").script(script).start();
    upstream.await.unwrap()
}

/// An Envoy with one worker, so that it holds exactly as many requests as a limit says.
fn one_worker(upstream: &Upstream, limit: u32) -> EnvoyBuilder {
    Envoy::builder()
        .concurrency(1)
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(&fixed_limit(limit, json!({}))))
        .route_timeout(Duration::ZERO)
}

/// The first connection manager's configuration in a bootstrap.
fn manager(bootstrap: &mut Value) -> &mut Value {
    &mut bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
}

fn routes(bootstrap: &mut Value) -> &mut Value {
    &mut manager(bootstrap)["route_config"]["virtual_hosts"][0]["routes"]
}

/// Gives a route a configuration of its own, with this name and limit.
fn configure(route: &mut Value, name: &str, limit: u32) {
    let mut config = native_config(
        &native_module(),
        name,
        &fixed_limit(limit, json!({})).to_string(),
    );
    config["@type"] = json!(PER_ROUTE);
    route["typed_per_filter_config"] = json!({"tidegate": config});
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn routes_with_configurations_of_their_own_have_limits_of_their_own() {
    let turn = turn::shared().await;
    let upstream = holding().await;
    let envoy = ["/narrow", "/wide", "/"]
        .iter()
        .fold(one_worker(&upstream, 1), |envoy, prefix| {
            envoy.route(Route::prefix(prefix).to("main"))
        })
        .edit(|bootstrap| {
            let routes = routes(bootstrap);
            configure(&mut routes[0], "tidegate@narrow", 1);
            configure(&mut routes[1], "tidegate@wide", 3);
        });
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    let mut crowds = Vec::new();
    for (path, limit) in [("/narrow", 1), ("/wide", 3), ("/", 1)] {
        let before = stage.sum("in_flight", "main").await;
        crowds.push(Crowd::send(&caller, &Call::get(path), limit));
        let wanted = before + u64::try_from(limit).unwrap();
        stage.until_sum("in_flight", "main", wanted).await;
        let reply = caller.get(path).await.unwrap();
        ensure!(stage, is_shed(&reply), "{path}: {reply:?}");
    }
    let metrics = stage.metrics().await;
    let counts = ["tidegate@narrow", "tidegate@wide"]
        .map(|name| metrics.value("in_flight", "main", &[("plugin", name)]));
    ensure!(stage, counts == [Some(1), Some(3)], "{counts:?}");
    drop(crowds);
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn listeners_with_one_name_of_the_filter_share_its_state() {
    let turn = turn::shared().await;
    let upstream = holding().await;
    let envoy = one_worker(&upstream, 1).edit(|bootstrap| {
        let listeners = bootstrap["static_resources"]["listeners"]
            .as_array_mut()
            .unwrap();
        let mut second = listeners[0].clone();
        second["name"] = json!("second");
        listeners.push(second);
    });
    let stage = Stage::start(turn, envoy).await;
    let listeners = stage.envoy.admin().listeners().await.unwrap();
    let [one, other] = listeners[..] else {
        stage.fail(&format!("{listeners:?}")).await
    };
    let crowd = Crowd::send(&Caller::http1(one), &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let other = Caller::http1(other);
    let reply = other.get("/").await.unwrap();
    ensure!(stage, is_shed(&reply), "{reply:?}");
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
    let reply = other.get("/quick").await.unwrap();
    ensure!(stage, reply.status == 200, "{reply:?}");
}

/// Envoy makes a new stream for the second request, before it destroys that of the first.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn an_internal_redirect_is_one_request_in_flight_at_a_time() {
    let turn = turn::shared().await;
    let script = |head: &RequestHead| {
        Some(match head.path.as_str() {
            "/moved" => Script::status(302).header("location", "http://main/quick"),
            _ => Script::status(200),
        })
    };
    let upstream = Upstream::builder("main").script(script).start();
    let upstream = upstream.await.unwrap();
    let envoy = one_worker(&upstream, 1).edit(|bootstrap| {
        routes(bootstrap)[0]["route"]["internal_redirect_policy"] =
            json!({"redirect_response_codes": [302], "max_internal_redirects": 1});
    });
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    for _ in 0..20 {
        let reply = caller.get("/moved").await.unwrap();
        ensure!(stage, reply.status == 200, "{reply:?}");
    }
    stage.until_sum("requests_total", "main", 40).await;
    stage.until_sum("in_flight", "main", 0).await;
    let shed = stage.sum("requests_shed_total", "main").await;
    ensure!(stage, shed == 0, "{shed} were shed");
}

/// Requests under way are cut, and the module's thread and its state go with the process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn an_envoy_that_is_ended_with_requests_under_way_ends_well() {
    let turn = turn::shared().await;
    let upstream = holding().await;
    let mut stage = Stage::start(turn, one_worker(&upstream, 8)).await;
    let caller = stage.caller();
    let crowd = Crowd::send(&caller, &Call::get("/"), 8);
    stage.until_sum("in_flight", "main", 8).await;
    stage.envoy.signal(Signal::TERM).unwrap();
    let started = Instant::now();
    while stage.envoy.is_running() {
        ensure!(stage, started.elapsed() < BOUND, "it runs on");
        sleep(Duration::from_millis(20)).await;
    }
    let log = stage.envoy.log();
    for word in ["panic", "Caught", "assert failure"] {
        assert!(!log.contains(word), "{log}");
    }
    drop(crowd);
}

/// Runs `envoy --mode validate` on a bootstrap in YAML.
fn validate(bootstrap: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("envoy.yaml");
    fs::write(&path, bootstrap).unwrap();
    let (variable, modules) = search_path(&native_module());
    Command::new(binary())
        .args(["--mode", "validate", "--log-level", "info", "--config-path"])
        .arg(&path)
        .env(variable, modules)
        .output()
        .unwrap()
}

/// A bootstrap with one filter and one route, whose `typed_per_filter_config` is this text.
fn bootstrap(per_filter: &str) -> String {
    let document = fixed_limit(1, json!({})).to_string();
    let filter = json!({"name": "tidegate", "typed_config": native_config(&native_module(), "tidegate", &document)});
    let indented: String = per_filter
        .lines()
        .map(|line| format!("                {line}\n"))
        .collect();
    format!(
        r#"static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: 0}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress
          http_filters:
          - {filter}
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{prefix: /}}
                direct_response: {{status: 200}}
{indented}"#
    )
}

/// The example of the page.
fn example() -> String {
    let page = fs::read_to_string(repository().join(PAGE)).unwrap();
    let blocks = page.split("```yaml\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| rest.split("```").next());
    let found = blocks.find(|block| block.starts_with("typed_per_filter_config:"));
    found.unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn envoy_validates_the_example_of_a_routes_configuration() {
    let _turn = turn::shared().await;
    require(&native_module());
    let example = example();
    let good = validate(&bootstrap(&example));
    let said = String::from_utf8_lossy(&good.stderr);
    assert!(good.status.success(), "{said}");

    let bad = validate(&bootstrap(&example.replace("0.99", "2")));
    let said = String::from_utf8_lossy(&bad.stderr);
    assert!(!bad.status.success());
    assert!(said.contains("slo.latency.quantile: found 2"), "{said}");
}
