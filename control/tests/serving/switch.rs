//! The switch for all policies: by REST, by the command, by file and by setting.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tokio::time::timeout;

use crate::proxy::{TestProxy, config};
use crate::stage::{ServingStage, TOKEN, policy, until};

fn signed(call: Call) -> Call {
    call.header("authorization", &format!("Bearer {TOKEN}"))
}

fn off(note: &str) -> Call {
    signed(Call::put("/v1/disabled", note.to_owned()))
}

/// The page promises a second; the rest is for a busy machine.
const IN_FORCE: Duration = Duration::from_secs(15);

/// The field `enabled` in the next push to the proxy, which must follow soon.
async fn enabled(proxy: &mut TestProxy) -> Value {
    let pushed = timeout(IN_FORCE, proxy.pushed_and_accepted()).await;
    let pushed = pushed.expect("a push in time");
    let config: Value = config(&pushed.resources[0].value);
    config.get("enabled").cloned().unwrap_or(json!(true))
}

async fn metric(stage: &ServingStage, name: &str) -> String {
    let reply = stage.call(Call::get("/metrics")).await;
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    let line = format!("tidegate_control_{name} ");
    let value = text.lines().find_map(|l| l.strip_prefix(&line));
    value.unwrap_or_default().to_owned()
}

/// Runs the `tidegate` command against the service.
async fn tidegate(stage: &ServingStage, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments);
    command.env("TIDEGATE_SERVER", format!("http://{}", stage.settings.http));
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_policies_go_off_and_on_again_and_stay_off_over_a_restart() {
    let mut stage = ServingStage::start().await;
    stage.write("a.yaml", &policy("a", "edge", 100));
    stage.write(
        "own.yaml",
        &format!("{}  enabled: false\n", policy("own", "other", 100)),
    );
    until("both are in force", async || {
        stage.json("/v1/policies").await["policies"]
            .as_array()
            .unwrap()
            .len()
            == 2
    })
    .await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
    let mut unmatched = TestProxy::connect(stage.settings.xds, "stray", "").await;
    assert_eq!(enabled(&mut proxy).await, true);
    assert_eq!(enabled(&mut unmatched).await, true);
    assert_eq!(metric(&stage, "disabled").await, "0");
    assert_eq!(metric(&stage, "policies_disabled").await, "1");

    let unsigned = stage.call(Call::put("/v1/disabled", String::new())).await;
    assert_eq!(unsigned.status, 401);
    let long = stage.call(off(&"x".repeat(501))).await;
    assert_eq!(long.status, 422);
    let reply = stage.call(off("incident 4711")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(enabled(&mut proxy).await, false);
    assert_eq!(enabled(&mut unmatched).await, false);
    let status = stage.json("/v1/status").await;
    assert_eq!(status["disabled"]["all"], true);
    assert_eq!(status["policies"]["disabled"], 2);
    let note = status["disabled"]["by"][0]["note"].as_str().unwrap();
    assert!(
        note.starts_with("incident 4711 (REST, 127.0.0.1:"),
        "{note}"
    );
    assert_eq!(metric(&stage, "disabled").await, "1");
    let policies = stage.json("/v1/policies").await;
    assert_eq!(policies["policies"][0]["enabled"], false);
    assert_eq!(policies["policies"][0]["mode"], "enforce");

    stage.stop().await;
    stage.resume().await;
    let mut again = TestProxy::connect(stage.settings.xds, "edge", "").await;
    assert_eq!(enabled(&mut again).await, false);
    stage.write("a.yaml", &policy("a", "edge", 200));
    assert_eq!(enabled(&mut again).await, false, "a new version is off too");

    let reply = stage.call(signed(Call::delete("/v1/disabled"))).await;
    assert_eq!(reply.status, 200);
    assert_eq!(enabled(&mut again).await, true);
    let status = stage.json("/v1/status").await;
    assert_eq!(status["disabled"], json!({"all": false, "by": []}));
    assert_eq!(
        status["policies"]["disabled"], 1,
        "its own enabled: false stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_turns_the_policies_off_with_a_file_or_the_command() {
    let stage = ServingStage::start().await;
    stage.write("a.yaml", &policy("a", "edge", 100));
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
    until("it is in force", async || {
        stage.json("/v1/proxies").await["proxies"][0]["policy"] == "a"
    })
    .await;
    let token = stage.folder().join("token");
    let token = token.to_str().unwrap();

    let refused = tidegate(&stage, &["disable", "--all"]).await;
    assert_eq!(refused.status.code(), Some(2));
    let done = tidegate(
        &stage,
        &[
            "disable",
            "--all",
            "--note",
            "a test",
            "--token-file",
            token,
        ],
    )
    .await;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    until("it is off", async || enabled(&mut proxy).await == false).await;
    let status = tidegate(&stage, &["status"]).await;
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.contains("all policies are off"), "{text}");
    let done = tidegate(&stage, &["enable", "--all", "--token-file", token]).await;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(enabled(&mut proxy).await, true);

    let file = stage.settings.state.clone().unwrap().join("disabled");
    fs::write(&file, "by hand").unwrap();
    assert_eq!(enabled(&mut proxy).await, false);
    assert_eq!(
        stage.json("/v1/disabled").await["by"],
        json!([{"source": "file", "note": "by hand"}])
    );
    fs::remove_file(&file).unwrap();
    assert_eq!(enabled(&mut proxy).await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_settings_turn_off_stays_off() {
    let stage = ServingStage::with(|settings| settings.disabled = true).await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
    assert_eq!(enabled(&mut proxy).await, false);

    let reply = stage.call(signed(Call::delete("/v1/disabled"))).await;

    assert_eq!(reply.status, 409);
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert!(
        body["detail"].as_str().unwrap().contains("settings"),
        "{body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_state_directory_the_switch_cannot_be_written() {
    let stage = ServingStage::with(|settings| settings.state = None).await;
    assert_eq!(stage.call(off("")).await.status, 405);
    assert_eq!(stage.json("/v1/disabled").await["all"], false);
}
