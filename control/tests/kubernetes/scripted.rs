//! The whole service with the simulated API server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use tidegate_control::kube::settings::ModuleVersions;

use crate::cluster::{BOTH, GATEWAY, NAMESPACE, OLD, PROXIES, WEB, policy};
use crate::recordings::{CALL, Call, of};
use crate::replica::{TestReplica, pass, until};
use crate::server::{ScriptedServer, status};

const POLICIES: &str = "breakerpolicies";
const NEW: &str = "trafficextensions";
const OLDER: &str = "wasmplugins";

/// A condition, such as `True Programmed`; only a space if there is none.
fn condition(server: &ScriptedServer, name: &str, kind: &str) -> String {
    let policy = server.object(POLICIES, name).unwrap_or_default();
    let conditions = policy["status"]["conditions"].as_array().cloned();
    let condition = conditions.into_iter().flatten().find(|c| c["type"] == kind);
    let condition = condition.unwrap_or_default();
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("status"), text("reason"))
}

async fn programmed(server: &ScriptedServer, name: &str) {
    let is_so = || condition(server, name, "Programmed") == "True Programmed";
    until("it is programmed", is_so).await;
}

/// A policy with `mode: observe`.
fn observing(name: &str, targets: &str) -> Value {
    let mut policy = policy(name, targets);
    policy["spec"]["mode"] = json!("observe");
    policy
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_written_and_reported_once() {
    let server = ScriptedServer::new(BOTH);
    server.put(POLICIES, &policy("web", WEB));
    let replica = TestReplica::start(&server, "one");

    programmed(&server, "web").await;
    until("its Events are there", || {
        server.objects("events").len() == 2
    })
    .await;

    assert_eq!(replica.policies(), 1);
    let object = server.object(NEW, "tidegate-web").unwrap();
    assert_eq!(
        object["spec"]["wasm"]["pluginConfig"]["slo"]["latency"]["target"],
        "250ms"
    );
    let events = server.objects("events");
    let reasons: Vec<&Value> = events.iter().map(|event| &event["reason"]).collect();
    assert_eq!(reasons, ["Accepted", "Programmed"]);
    assert_eq!(events[0]["regarding"]["name"], "web");
    let writes = server.writes();
    assert_eq!(
        writes,
        4,
        "an object, a status, two Events: {:?}",
        server.asked()
    );
    pass(Duration::from_secs(3_600)).await;
    assert_eq!(server.writes(), writes, "no busy loop");
    assert_eq!(
        replica.metric(r#"writes_total{object="extension",result="done"}"#),
        1
    );
    assert_eq!(
        replica.metric(r#"writes_total{object="status",result="done"}"#),
        1
    );
    assert_eq!(replica.metric("leading"), 1);
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_objective_that_the_graph_shows_out_of_reach_is_reported() {
    let server = ScriptedServer::new(BOTH);
    server.put(POLICIES, &policy("web", WEB));
    let replica = TestReplica::start(&server, "one");
    programmed(&server, "web").await;
    assert_eq!(condition(&server, "web", "Unreachable"), " ");

    for (p50, expected) in [
        (15.0, "False NotOutOfReach"),
        (300.0, "True OutOfReach"),
        (20.0, "False NotOutOfReach"),
    ] {
        let (p95, p99) = (p50 * 2.0, p50 * 4.0);
        let built = of(&[Call {
            p50,
            p95,
            p99,
            ..CALL
        }]);
        replica.traffic.set(Ok(built), Timestamp::UNIX_EPOCH);
        until("it is reported", || {
            condition(&server, "web", "Unreachable") == expected
        })
        .await;
    }
    replica
        .traffic
        .set(Err("it is down".to_owned()), Timestamp::UNIX_EPOCH);
    let writes = server.writes();
    pass(Duration::from_secs(3_600)).await;
    assert_eq!(server.writes(), writes);
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_and_removals_follow() {
    let server = ScriptedServer::new(BOTH);
    let replica = TestReplica::start(&server, "one");
    server.put(POLICIES, &policy("web", WEB));
    programmed(&server, "web").await;

    server.put(POLICIES, &observing("web", WEB));
    let mode = || {
        server.object(NEW, "tidegate-web").unwrap()["spec"]["wasm"]["pluginConfig"]["mode"].clone()
    };
    until("the object has changed", || mode() == "observe").await;

    server.remove(NEW, "tidegate-web");
    until("it is back", || {
        server.object(NEW, "tidegate-web").is_some()
    })
    .await;

    server.remove(POLICIES, "web");
    until("it is gone", || server.objects(NEW).is_empty()).await;
    until("it is out of force", || replica.policies() == 0).await;
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_older_api_is_written_until_the_newer_one_is_available() {
    let server = ScriptedServer::new(OLD);
    server.put(POLICIES, &policy("web", GATEWAY));
    let replica = TestReplica::start(&server, "one");
    programmed(&server, "web").await;
    assert!(server.object(OLDER, "tidegate-web").is_some());

    server.serve(BOTH);

    until("the new object is there", || {
        server.object(NEW, "tidegate-web").is_some()
    })
    .await;
    until("the old one is gone", || server.objects(OLDER).is_empty()).await;
    programmed(&server, "web").await;
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fields_of_other_owners_are_reported_and_rarely_retried() {
    let server = ScriptedServer::new(BOTH);
    let mut taken = status(
        409,
        "Conflict",
        r#"conflict with "kubectl": .spec.priority"#,
    );
    taken["details"] = json!({"causes": [
        {"reason": "FieldManagerConflict", "message": "kubectl", "field": ".spec.priority"},
    ]});
    server.refuse(NEW, Some(taken));
    server.put(POLICIES, &policy("web", WEB));
    let replica = TestReplica::start(&server, "one");

    until("it is reported", || {
        condition(&server, "web", "Conflicted") == "True FieldsTaken"
    })
    .await;

    assert_eq!(condition(&server, "web", "Programmed"), "False Conflicted");
    pass(Duration::from_secs(600)).await;
    let attempts = server.count(|asked| asked.resource == NEW && asked.verb == "patch");
    assert!((2..=11).contains(&attempts), "{attempts} in ten minutes");
    server.refuse(NEW, None);
    pass(Duration::from_secs(300)).await;
    programmed(&server, "web").await;
    assert_eq!(condition(&server, "web", "Conflicted"), "False NoConflict");
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_rejection_by_the_server_is_reported_with_its_message() {
    let server = ScriptedServer::new(BOTH);
    server.refuse(
        NEW,
        Some(status(422, "Invalid", "spec.wasm.url: no such scheme")),
    );
    server.put(POLICIES, &policy("web", WEB));
    let replica = TestReplica::start(&server, "one");

    until("it is reported", || {
        condition(&server, "web", "Programmed") == "False Rejected"
    })
    .await;

    let policy = server.object(POLICIES, "web").unwrap().to_string();
    assert!(policy.contains("no such scheme"), "{policy}");
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_status_write_causes_no_busy_loop() {
    let server = ScriptedServer::new(BOTH);
    let whole = format!("{POLICIES}/status");
    server.refuse(&whole, Some(status(403, "Forbidden", "may not patch")));
    server.put(POLICIES, &policy("web", WEB));
    let replica = TestReplica::start(&server, "one");

    until("the object is there", || {
        server.object(NEW, "tidegate-web").is_some()
    })
    .await;
    pass(Duration::from_secs(600)).await;

    let attempts = server.count(|asked| asked.resource == whole);
    assert!((2..=11).contains(&attempts), "{attempts} in ten minutes");
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn policies_stay_in_force_without_the_server_and_its_return_is_noticed_within_seconds() {
    let server = ScriptedServer::new(BOTH);
    server.put(POLICIES, &policy("web", WEB));
    let replica = TestReplica::start(&server, "one");
    programmed(&server, "web").await;

    server.set_down(true);
    let before = server.count(|asked| asked.verb == "watch" || asked.verb == "list");
    pass(Duration::from_secs(600)).await;

    let asked = server.count(|asked| asked.verb == "watch" || asked.verb == "list") - before;
    // Each of the three resources is requested every 2.5 to 5 s, and a little more often at first.
    assert!(
        (3 * 110..3 * 250).contains(&asked),
        "{asked} lists and watches of three resources in ten minutes"
    );
    assert_eq!(replica.policies(), 1);
    assert!(replica.health.is_alive() && replica.health.has_policies());
    assert_eq!(
        replica.metric("leading"),
        0,
        "a replica that cannot renew does not lead"
    );
    server.set_down(false);
    let back = Instant::now();
    server.put(POLICIES, &observing("web", WEB));
    let mode = || {
        server.object(NEW, "tidegate-web").unwrap()["spec"]["wasm"]["pluginConfig"]["mode"].clone()
    };
    until("the change has followed", || mode() == "observe").await;
    let late = back.elapsed();
    assert!(
        late < Duration::from_secs(6),
        "the service wrote the change after {late:?}"
    );
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn it_is_not_ready_before_the_policies_are_known() {
    let server = ScriptedServer::new(BOTH);
    server.set_down(true);
    let replica = TestReplica::start(&server, "one");
    pass(Duration::from_secs(60)).await;
    assert!(replica.health.is_alive() && !replica.health.has_policies());

    server.set_down(false);

    until("they are known", || replica.health.has_policies()).await;
    replica.health.policies().await;
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_replica_writes_all_serve_and_another_takes_over_immediately() {
    let server = ScriptedServer::new(BOTH);
    let one = TestReplica::start(&server, "one");
    until("one leads", || one.metric("leading") == 1).await;
    let two = TestReplica::start(&server, "two");
    server.put(POLICIES, &policy("web", WEB));
    server.put(POLICIES, &policy("edge", PROXIES));
    programmed(&server, "web").await;
    until("two has the policies", || two.policies() == 2).await;
    let by = |name: &str| {
        let resources = [NEW, "breakerpolicies/status"];
        server.count(|asked| {
            asked.by == name
                && asked.verb == "patch"
                && resources.contains(&asked.resource.as_str())
        })
    };
    assert_eq!(by("two"), 0);

    one.stop().await;
    let before = by("one");
    server.put(POLICIES, &observing("web", WEB));
    until("two has written", || by("two") > 0).await;

    assert_eq!(by("one"), before);
    let lease = server.object("leases", "tidegate").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "two");
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    two.stop().await;
    let lease = server.object("leases", "tidegate").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "the lease is released");
}

#[tokio::test(start_paused = true)]
async fn another_replica_replaces_a_disconnected_leader_and_only_one_leads() {
    let server = ScriptedServer::new(BOTH);
    let one = TestReplica::start(&server, "one");
    until("one leads", || one.metric("leading") == 1).await;
    let two = TestReplica::start(&server, "two");
    until("two has read the lease", || {
        server.count(|asked| asked.by == "two" && asked.resource == "leases") > 0
    })
    .await;

    one.cut.store(true, Ordering::SeqCst);
    until("two leads", || {
        assert!(one.metric("leading") + two.metric("leading") <= 1);
        two.metric("leading") == 1
    })
    .await;

    server.put(POLICIES, &policy("web", WEB));
    programmed(&server, "web").await;
    one.cut.store(false, Ordering::SeqCst);
    pass(Duration::from_secs(300)).await;
    assert_eq!((one.metric("leading"), two.metric("leading")), (0, 1));
    until("one has the policy", || one.policies() == 1).await;
    one.stop().await;
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn with_one_namespace_no_other_is_requested() {
    let server = ScriptedServer::new(BOTH);
    server.put(POLICIES, &policy("web", WEB));
    let mut elsewhere = policy("far", WEB);
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    server.put(POLICIES, &elsewhere);
    let replica = TestReplica::with(&server, "one", |settings| {
        settings.scope = tidegate_control::kube::settings::Scope::Namespace("shop".to_owned());
    });

    programmed(&server, "web").await;

    let wide = server.count(|asked| !asked.is_namespaced && asked.verb != "discover");
    assert_eq!(wide, 0, "{:?}", server.asked());
    assert_eq!(replica.policies(), 1);
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_the_lease_turns_all_policies_off() {
    const LEASES: &str = "leases";
    let server = ScriptedServer::new(BOTH);
    server.put(POLICIES, &policy("web", WEB));
    let one = TestReplica::start(&server, "one");
    programmed(&server, "web").await;
    let enabled = || {
        let object = server.object(NEW, "tidegate-web").unwrap();
        object["spec"]["wasm"]["pluginConfig"]["enabled"].clone()
    };
    assert_eq!(enabled(), Value::Null);

    one.health
        .shutoff_lease()
        .write(Some("incident 4711"))
        .await
        .unwrap();
    until("requests pass", || enabled() == false).await;
    until("it is reported", || {
        condition(&server, "web", "Programmed") == "True Disabled"
    })
    .await;
    let told = server.object(POLICIES, "web").unwrap().to_string();
    assert!(told.contains("lease: incident 4711"), "{told}");
    // The annotation stays while the lease is renewed many times. Another replica reads it.
    pass(Duration::from_secs(120)).await;
    let two = TestReplica::start(&server, "two");
    until("the other replica has read the annotation", || {
        two.catalog.shutoff().is_off()
    })
    .await;
    one.stop().await;
    until("the other one leads", || two.metric("leading") == 1).await;
    assert_eq!(enabled(), false);

    // Remove the annotation, as kubectl does.
    let name = crate::cluster::settings().lease.name;
    let mut lease = server.object(LEASES, &name).unwrap();
    let annotation = &mut lease["metadata"]["annotations"]["tidegate.dev/disabled"];
    assert!(annotation.take().is_string());
    server.put(LEASES, &lease);
    // This server removes no fields from an object. `control/tests/kube` tests this with a real server.
    until("the switch is on", || !two.catalog.shutoff().is_off()).await;
    until("it is not reported any more", || {
        condition(&server, "web", "Programmed") != "True Disabled"
    })
    .await;
    two.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_turns_itself_off_is_reported() {
    let server = ScriptedServer::new(BOTH);
    let mut web = policy("web", WEB);
    web["spec"]["enabled"] = json!(false);
    server.put(POLICIES, &web);
    let replica = TestReplica::start(&server, "one");
    until("it is reported", || {
        condition(&server, "web", "Programmed") == "True Disabled"
    })
    .await;
    replica.stop().await;
}

fn with_canary(settings: &mut tidegate_control::kube::KubeSettings) {
    let digest = "0b".repeat(32);
    let canary = format!("canary=oci://registry.example/tidegate@sha256:{digest}");
    let plain = format!("next=https://example.com/tidegate.wasm#sha256:{digest}");
    settings.extension.versions = ModuleVersions::parse(&[canary, plain], &[]).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_policy_gets_the_version_of_the_module_that_it_names_if_the_settings_have_it() {
    let server = ScriptedServer::new(BOTH);
    let mut web = policy("web", WEB);
    web["spec"]["module"] = json!("canary");
    server.put(POLICIES, &web);
    let replica = TestReplica::with(&server, "one", with_canary);
    programmed(&server, "web").await;
    let wasm = || server.object(NEW, "tidegate-web").unwrap()["spec"]["wasm"].clone();
    let url = wasm()["url"].as_str().unwrap().to_owned();
    assert!(url.contains("@sha256:0b0b"), "{url}");
    assert_eq!(wasm()["sha256"], Value::Null);
    assert_eq!(
        wasm()["pluginConfig"]["module"],
        Value::Null,
        "module is not a setting of the filter"
    );

    web["spec"]["module"] = json!("next");
    server.put(POLICIES, &web);
    until("it has a checksum", || wasm()["sha256"] == "0b".repeat(32)).await;
    programmed(&server, "web").await;

    web["spec"]["module"] = json!("nightly");
    server.put(POLICIES, &web);
    until("it is reported", || {
        condition(&server, "web", "Accepted") == "False ModuleNotAllowed"
    })
    .await;
    assert_eq!(
        condition(&server, "web", "Programmed"),
        "False ModuleNotAllowed"
    );
    let told = server.object(POLICIES, "web").unwrap().to_string();
    assert!(told.contains("expected canary or next"), "{told}");
    pass(Duration::from_secs(60)).await;
    assert_eq!(
        wasm()["url"],
        "https://example.com/tidegate.wasm",
        "the module stays"
    );

    web["spec"]["module"] = Value::Null;
    server.put(POLICIES, &web);
    until("it is back", || {
        wasm()["url"] == "oci://registry.example/tidegate:1"
    })
    .await;
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn policies_of_one_workload_with_different_modules_are_a_conflict() {
    let server = ScriptedServer::new(BOTH);
    server.put(POLICIES, &policy("all", NAMESPACE));
    let mut web = policy("web", WEB);
    web["spec"]["module"] = json!("canary");
    server.put(POLICIES, &web);
    let replica = TestReplica::with(&server, "one", with_canary);
    until("it is reported", || {
        condition(&server, "all", "Conflicted") == "True ModulesDiffer"
    })
    .await;
    assert_eq!(condition(&server, "web", "Conflicted"), "False NoConflict");

    web["spec"]["module"] = Value::Null;
    server.put(POLICIES, &web);
    until("the policies only overlap", || {
        condition(&server, "all", "Conflicted") == "True Overlapping"
    })
    .await;
    replica.stop().await;
}
