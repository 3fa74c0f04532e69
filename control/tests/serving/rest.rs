//! Policies by REST, and the other paths that the service serves over HTTP.

use serde_json::{Value, json};
use tidegate_testbed::client::{Call, CallReply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::proxy::{TestProxy, limit};
use crate::stage::{BOUND, ServingStage, TOKEN, policy, until};

fn signed(call: Call) -> Call {
    call.header("authorization", &format!("Bearer {TOKEN}"))
}

fn put(name: &str, max: u32) -> Call {
    let path = format!("/v1/policies/{name}");
    signed(Call::put(&path, policy(name, "*", max)))
}

fn body(reply: &CallReply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_policy_reaches_proxies_and_survives_a_restart() {
    let mut stage = ServingStage::start().await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
    let first = proxy.pushed().await;
    proxy.accept(&first).await;

    let reply = stage.call(put("a", 100)).await;
    assert_eq!(reply.status, 201);
    let tag = reply.header("etag").unwrap().to_owned();
    assert_eq!(limit(&proxy.pushed().await), 100);

    stage.stop().await;
    stage.resume().await;
    let reply = stage.call(Call::get("/v1/policies/a")).await;
    assert_eq!(reply.header("etag"), Some(tag.as_str()));
    assert_eq!(reply.body, policy("a", "*", 100).as_bytes());
    let as_json = Call::get("/v1/policies/a").header("accept", "application/json");
    assert_eq!(
        body(&stage.call(as_json).await)["spec"]["limit"]["max"],
        100
    );
    let listed = stage.json("/v1/policies").await;
    assert_eq!(listed["policies"][0]["source"], "rest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_replaced_only_with_its_current_tag() {
    let stage = ServingStage::start().await;
    let first = stage.call(put("a", 100).header("if-none-match", "*")).await;
    assert_eq!(first.status, 201);
    let tag = first.header("etag").unwrap().to_owned();

    assert_eq!(stage.call(put("a", 200)).await.status, 428);
    let again = put("a", 200).header("if-none-match", "*");
    assert_eq!(stage.call(again).await.status, 412);
    let second = stage.call(put("a", 200).header("if-match", &tag)).await;
    assert_eq!(second.status, 200);
    let stale = put("a", 300).header("if-match", &tag);
    assert_eq!(stage.call(stale).await.status, 412);

    let delete = || signed(Call::delete("/v1/policies/a"));
    assert_eq!(
        stage.call(delete().header("if-match", &tag)).await.status,
        412
    );
    let tag = second.header("etag").unwrap();
    assert_eq!(
        stage.call(delete().header("if-match", tag)).await.status,
        204
    );
    assert_eq!(stage.call(delete()).await.status, 404);
    assert_eq!(stage.call(Call::get("/v1/policies/a")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_listed_with_path_found_and_expected() {
    let stage = ServingStage::start().await;
    let wrong = policy("a", "*", 100)
        .replace("0.99", "99")
        .replace("300ms", "soon");

    let reply = stage.call(signed(Call::put("/v1/policies/a", wrong))).await;

    assert_eq!(reply.status, 422);
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    let problems = body(&reply)["problems"].clone();
    assert_eq!(problems[0]["path"], "spec.slo.latency.quantile");
    assert_eq!(problems[0]["found"], "99");
    assert_eq!(problems[1]["path"], "spec.slo.latency.target");
    assert_eq!(stage.json("/v1/policies").await["policies"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_needs_the_token_and_reading_does_not() {
    let stage = ServingStage::start().await;
    let text = policy("a", "*", 100);
    let wrong = "Bearer not the token for tests";
    for call in [
        Call::put("/v1/policies/a", text.clone()),
        Call::put("/v1/policies/a", text.clone()).header("authorization", wrong),
        Call::delete("/v1/policies/a"),
    ] {
        let reply = stage.call(call).await;
        assert_eq!(reply.status, 401);
        assert!(reply.header("www-authenticate").is_some());
    }
    assert_eq!(stage.call(Call::get("/v1/policies")).await.status, 200);

    let closed = ServingStage::with(|settings| settings.files.token = None).await;
    assert_eq!(closed.call(put("a", 100)).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_rejected() {
    let stage = ServingStage::start().await;
    let large = "#".repeat((1 << 20) + 1);
    let reply = stage.call(signed(Call::put("/v1/policies/a", large))).await;
    assert_eq!(reply.status, 413);
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_state_directory_a_policy_is_rejected_and_the_old_one_remains_in_force() {
    let stage = ServingStage::start().await;
    let first = stage.call(put("a", 100)).await;
    let tag = first.header("etag").unwrap().to_owned();
    std::fs::rename(stage.folder().join("state"), stage.folder().join("gone")).unwrap();

    let refused = stage.call(put("a", 200).header("if-match", &tag)).await;

    assert_eq!(refused.status, 500);
    let detail = body(&refused)["detail"].to_string();
    assert!(detail.contains("state directory"), "{detail}");
    let reply = stage.call(Call::get("/v1/policies/a")).await;
    assert_eq!(reply.header("etag"), Some(tag.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_page_are_served() {
    let stage = ServingStage::start().await;
    assert_eq!(stage.health("/healthz").await, 200);
    assert_eq!(stage.health("/readyz").await, 200);
    assert_eq!(
        stage.health("/v1/policies").await,
        404,
        "the health port serves only health checks"
    );
    assert_eq!(stage.call(Call::get("/healthz")).await.status, 404);
    let page = stage.call(Call::get("/")).await;
    let policy = page.header("content-security-policy");
    assert!(policy.unwrap().contains("script-src 'self'"));
    let text = String::from_utf8_lossy(&page.body).into_owned();
    for part in ["page.css", "page.js"] {
        assert!(text.contains(part), "{part}");
        let reply = stage.call(Call::get(&format!("/{part}"))).await;
        assert_eq!(reply.status, 200, "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_proxies_by_version_and_errors_once() {
    let stage = ServingStage::start().await;
    let shows = async |line: String| {
        let text = stage.call(Call::get("/metrics")).await.body;
        let line = format!("tidegate_control_{line}\n");
        String::from_utf8_lossy(&text).contains(&line)
    };
    let mut versions = Vec::new();
    for max in [100, 200] {
        stage.write("a.yaml", &policy("a", "edge", max));
        let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
        while limit(&proxy.pushed_and_accepted().await) != max {}
        let running = async || {
            stage.resource().await["running"]
                .as_str()
                .map(ToOwned::to_owned)
        };
        until("it is running", async || running().await.is_some()).await;
        let shown = running().await.unwrap()[..12].to_owned();

        let series = format!("running{{version=\"{shown}\"}} 1");
        until("the version has a series", async || {
            shows(series.clone()).await
        })
        .await;
        assert!(shows("proxies 1".to_owned()).await);
        versions.push(shown);
        drop(proxy);
        until("it is gone", async || stage.proxies().await == 0).await;
    }
    let old = format!("running{{version=\"{}\"}} 1", versions[0]);
    assert!(
        !shows(old).await,
        "a version that no proxy runs has a series"
    );
    assert!(shows("render_errors_total 0".to_owned()).await);

    stage.write("b.yaml", "apiVersion: [");

    until("the error is counted", async || {
        shows("render_errors_total 1".to_owned()).await
    })
    .await;
    stage.write("a.yaml", &policy("a", "edge", 300));
    until("the other file was read", async || {
        let version = stage.json("/v1/policies").await["policies"][0]["version"].clone();
        !version.as_str().unwrap().starts_with(&versions[1])
    })
    .await;
    assert!(
        shows("render_errors_total 1".to_owned()).await,
        "counted again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_s_events_follow_policies_and_proxies() {
    let stage = ServingStage::start().await;
    let mut socket = TcpStream::connect(stage.settings.http).await.unwrap();
    let request = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut read = String::new();
    let mut shown = async |what: &str| {
        let mut buffer = [0; 4_096];
        while !read.contains(what) {
            let count = timeout(BOUND, socket.read(&mut buffer))
                .await
                .unwrap()
                .unwrap();
            assert_ne!(count, 0, "{read}");
            read.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    shown("text/event-stream").await;
    shown("\"policies\":[]").await;

    stage.call(put("late", 100)).await;
    shown("\"name\":\"late\"").await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-7", "").await;
    proxy.pushed().await;
    shown("\"id\":\"edge-7\"").await;
}
