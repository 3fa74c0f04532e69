//! What is planned, case by case.

use std::sync::Arc;

use serde_json::json;
use tidegate_control::fleet::RejectedPolicy;
use tidegate_control::kube::istio::{ApiChoice, IstioApi};
use tidegate_control::kube::plan::ObjectWrite;
use tidegate_control::kube::settings::{ProxyNamespaces, Scope};
use tidegate_control::kube::view::{ReachFindings, WriteFailureCause, WriteSubject};
use tidegate_control::policy::{PolicyName, gather};
use tidegate_control::render::PluginConfig;

use crate::cluster::{
    BOTH, GATEWAY, NAMESPACE, NONE, OLD, PROXIES, PlannedCluster, TWO, WEB, WEB_V2, key, policy,
};

const NEW_API: IstioApi = IstioApi::TrafficExtension;
const OLD_API: IstioApi = IstioApi::WasmPlugin;

#[test]
fn a_policy_becomes_an_object_of_the_newer_api_with_the_rendered_configuration() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.settings.extension.pull_secret = Some("pull".to_owned());
    cluster.settings.extension.priority = 10;
    let written = policy("web", WEB);
    cluster.put(written.clone());

    assert_eq!(cluster.settle(), (1, 1));

    let object = &cluster.objects[&key(NEW_API, "tidegate-web")];
    let text = written.to_string();
    let gathered = gather([("p", text.as_bytes())]);
    let rendered = PluginConfig::of(gathered.policies.iter().next().unwrap());
    let config: serde_json::Value = serde_json::from_str(&rendered.config).unwrap();
    assert_eq!(
        object["spec"],
        json!({
            "priority": 11,
            "selector": {"matchLabels": {"app": "web"}},
            "wasm": {
                "url": "oci://registry.example/tidegate:1",
                "sha256": "0a".repeat(32),
                "imagePullSecret": "pull",
                "failStrategy": "FAIL_OPEN",
                "pluginName": "tidegate",
                "pluginConfig": config,
            },
        })
    );
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "BreakerPolicy");
    assert_eq!(owner["controller"], true);
    assert_eq!(cluster.condition("web", "Programmed"), "True Programmed");
    assert_eq!(cluster.condition("web", "Conflicted"), "False NoConflict");
    let status = cluster.status("web");
    assert_eq!(status.version, Some(rendered.version.to_string()));
    assert_eq!(status.observed_generation, Some(1));
}

#[test]
fn only_the_service_s_own_namespaces_may_name_standalone_proxies() {
    let mut cluster = PlannedCluster::new(BOTH);
    let own: ProxyNamespaces = ["edge".to_owned()].into_iter().collect();
    cluster.settings.proxies = own.with("tidegate-system", &Scope::Cluster);
    cluster.put(policy("seize", PROXIES));
    cluster.put(policy("web", WEB));
    cluster.settle();

    assert_eq!(
        cluster.condition("seize", "Accepted"),
        "False ProxiesNotAllowed"
    );
    assert_eq!(
        cluster.condition("seize", "Programmed"),
        "False ProxiesNotAllowed"
    );
    assert_eq!(
        cluster.message("seize", "Accepted"),
        "spec.proxies: found standalone proxies in a policy of the namespace shop, expected them in policies of edge, tidegate-system only"
    );
    assert_eq!(cluster.status("seize").version, None);
    assert_eq!(cluster.condition("web", "Accepted"), "True Accepted");
    let gathered = cluster.view.gathered(&cluster.settings.proxies);
    let names: Vec<String> = gathered
        .policies
        .iter()
        .map(|p| p.name().to_string())
        .collect();
    assert_eq!(names, ["shop/web"], "no proxy gets the rejected policy");
    assert_eq!(gathered.problems.len(), 1, "the error is shown");

    // If the service follows a single namespace, its operator chose that namespace.
    let followed = Scope::Namespace("shop".to_owned());
    cluster.settings.proxies = ProxyNamespaces::default().with("tidegate-system", &followed);
    cluster.settle();
    assert_eq!(cluster.condition("seize", "Accepted"), "True Accepted");
    assert_eq!(cluster.condition("seize", "Programmed"), "True Served");
}

#[test]
fn a_policy_that_every_answering_proxy_rejects_is_not_in_force() {
    let mut cluster = PlannedCluster::new(NONE);
    cluster.put(policy("edge", PROXIES));
    cluster.settle();
    assert_eq!(cluster.condition("edge", "Programmed"), "True Served");
    let version = |cluster: &PlannedCluster| {
        let seen = cluster.view.policies.values().next().unwrap();
        PluginConfig::of(seen.valid.as_ref().unwrap()).version
    };
    let rejected = RejectedPolicy {
        version: version(&cluster),
        proxies: 2,
        message: "limit.max:\nfound 0".to_owned(),
    };
    let name = PolicyName::new(Some("shop".to_owned()), "edge".to_owned());

    cluster.view.rejected = Arc::new([(name, rejected)].into());
    cluster.settle();

    assert_eq!(cluster.condition("edge", "Programmed"), "False Rejected");
    assert_eq!(
        cluster.message("edge", "Programmed"),
        "proxies that reject it: 2, and none of this replica runs it: limit.max: found 0"
    );
    assert_eq!(cluster.status("edge").version, None);

    // The rejection is of the version before.
    let mut changed = policy("edge", PROXIES);
    changed["spec"]["slo"]["latency"]["target"] = json!("300ms");
    cluster.put(changed);
    cluster.settle();
    assert_eq!(cluster.condition("edge", "Programmed"), "True Served");
    assert_eq!(
        cluster.status("edge").version,
        Some(version(&cluster).to_string())
    );
}

#[test]
fn before_istio_1_30_it_is_a_wasm_plugin() {
    let mut cluster = PlannedCluster::new(OLD);
    cluster.put(policy("gateway", TWO));

    cluster.settle();

    let object = &cluster.objects[&key(OLD_API, "tidegate-gateway")];
    assert_eq!(object["kind"], "WasmPlugin");
    assert_eq!(object["spec"]["url"], "oci://registry.example/tidegate:1");
    assert_eq!(
        object["spec"]["targetRefs"],
        json!([
            {"group": "", "kind": "Service", "name": "reviews"},
            {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "waypoint"},
        ])
    );
}

#[test]
fn without_a_change_nothing_is_written() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.put(policy("gateway", GATEWAY));
    cluster.settle();

    cluster.put(policy("web", WEB));

    assert_eq!(cluster.settle(), (0, 0));
}

#[test]
fn a_change_is_written_once_and_reported_once() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let mut changed = policy("web", WEB);
    changed["spec"]["mode"] = json!("observe");
    cluster.put(changed);

    assert_eq!(cluster.settle(), (1, 1));

    let object = &cluster.objects[&key(NEW_API, "tidegate-web")];
    assert_eq!(object["spec"]["wasm"]["pluginConfig"]["mode"], "observe");
    assert_eq!(cluster.status("web").observed_generation, Some(2));
}

#[test]
fn a_deleted_or_changed_object_is_restored() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let object = key(NEW_API, "tidegate-web");
    let before = cluster.objects[&object]["spec"].clone();

    cluster.lose(&object);
    assert_eq!(cluster.settle(), (1, 0));
    assert_eq!(cluster.objects[&object]["spec"], before);

    cluster.meddle(&object, |object| object["spec"]["priority"] = json!(99));
    assert_eq!(cluster.settle(), (1, 0));
    assert_eq!(cluster.objects[&object]["spec"], before);
}

#[test]
fn fields_of_others_stay() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let object = key(NEW_API, "tidegate-web");

    cluster.meddle(&object, |object| {
        object["spec"]["match"] = json!([{"mode": "SERVER"}]);
        object["metadata"]["labels"]["team"] = json!("shop");
    });

    assert_eq!(cluster.settle(), (0, 0));
    let mut changed = policy("web", WEB);
    changed["spec"]["mode"] = json!("observe");
    cluster.put(changed);
    cluster.settle();
    assert_eq!(
        cluster.objects[&object]["spec"]["match"][0]["mode"],
        "SERVER"
    );
}

#[test]
fn additions_of_others_to_the_configuration_are_reported_as_a_conflict() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let object = key(NEW_API, "tidegate-web");

    cluster.meddle(&object, |object| {
        object["spec"]["wasm"]["pluginConfig"]["mode"] = json!("observe");
    });

    assert_eq!(cluster.settle(), (0, 1));
    assert_eq!(cluster.condition("web", "Conflicted"), "True FieldsAdded");
    assert_eq!(cluster.condition("web", "Programmed"), "False Conflicted");
    let message = cluster.message("web", "Conflicted");
    assert!(message.contains("spec.wasm.pluginConfig.mode"), "{message}");
}

#[test]
fn an_object_of_another_owner_is_not_modified() {
    let mut cluster = PlannedCluster::new(BOTH);
    let object = key(NEW_API, "tidegate-web");
    cluster.meddle(&object, |object| {
        object["spec"] = json!({"lua": {"inlineCode": "x"}})
    });
    let theirs = cluster.objects[&object].clone();
    cluster.put(policy("web", WEB));

    assert_eq!(cluster.settle(), (0, 1));
    assert_eq!(cluster.objects[&object], theirs);
    assert_eq!(cluster.condition("web", "Conflicted"), "True NameTaken");

    cluster.lose(&object);
    assert_eq!(cluster.settle(), (1, 1));
    assert_eq!(cluster.condition("web", "Programmed"), "True Programmed");
    assert_eq!(cluster.condition("web", "Conflicted"), "False NoConflict");
}

#[test]
fn deleting_a_policy_deletes_its_objects_and_no_others() {
    let mut cluster = PlannedCluster::new(BOTH);
    let foreign = key(NEW_API, "somebody-elses");
    cluster.meddle(&foreign, |_| {});
    cluster.put(policy("web", WEB));
    cluster.settle();

    cluster.remove("web");

    assert_eq!(cluster.settle(), (1, 0));
    assert_eq!(cluster.names(), ["TrafficExtension/somebody-elses"]);
}

#[test]
fn a_deleted_and_recreated_policy_gets_a_new_object() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let object = key(NEW_API, "tidegate-web");
    let before = cluster.objects[&object]["metadata"]["uid"].clone();
    cluster.remove("web");
    cluster.put(policy("web", GATEWAY));

    assert_eq!(
        cluster.settle(),
        (2, 1),
        "the old object is deleted and a new one is created"
    );

    assert_ne!(cluster.objects[&object]["metadata"]["uid"], before);
    assert_eq!(cluster.condition("web", "Programmed"), "True Programmed");
}

#[test]
fn a_policy_for_the_namespace_and_more_becomes_two_objects() {
    let mut both: serde_json::Value = serde_json::from_str(NAMESPACE).unwrap();
    let gateway: serde_json::Value = serde_json::from_str(GATEWAY).unwrap();
    let refs = both["targetRefs"].as_array_mut().unwrap();
    refs.push(gateway["targetRefs"][0].clone());
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("p", &both.to_string()));
    cluster.settle();
    assert_eq!(
        cluster.names(),
        [
            "TrafficExtension/tidegate-all-p",
            "TrafficExtension/tidegate-p"
        ]
    );
    let whole = &cluster.objects[&key(NEW_API, "tidegate-all-p")]["spec"];
    assert!(whole.get("selector").is_none() && whole.get("targetRefs").is_none());

    cluster.put(policy("p", GATEWAY));
    cluster.settle();

    assert_eq!(cluster.names(), ["TrafficExtension/tidegate-p"]);
}

#[test]
fn after_an_upgrade_of_istio_the_new_object_is_written_before_the_old_one_is_deleted() {
    let mut cluster = PlannedCluster::new(OLD);
    cluster.put(policy("web", WEB));
    cluster.settle();
    cluster.view.discover(BOTH);
    assert_eq!(
        cluster.plan().writes,
        [],
        "nothing is written before the existing objects are known"
    );
    cluster.view.see_all_objects(&[], NEW_API);

    let first = cluster.plan();
    assert!(
        matches!(first.writes.as_slice(), [ObjectWrite::Apply(_)]),
        "{first:?}"
    );
    cluster.carry_out(first);
    let second = cluster.plan();

    assert!(
        matches!(second.writes.as_slice(), [ObjectWrite::Delete { .. }]),
        "{second:?}"
    );
    cluster.carry_out(second);
    cluster.settle();
    assert_eq!(cluster.names(), ["TrafficExtension/tidegate-web"]);
}

#[test]
fn the_settings_may_name_the_api() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.settings.api = ApiChoice::Only(OLD_API);
    cluster.put(policy("web", WEB));
    cluster.settle();
    assert_eq!(cluster.names(), ["WasmPlugin/tidegate-web"]);
}

#[test]
fn without_istio_the_status_says_that_nothing_is_in_force() {
    let mut cluster = PlannedCluster::new(NONE);
    cluster.put(policy("web", WEB));
    cluster.put(policy("edge", PROXIES));

    assert_eq!(cluster.settle(), (0, 2));

    assert_eq!(cluster.condition("web", "Accepted"), "True Accepted");
    assert_eq!(
        cluster.condition("web", "Programmed"),
        "False NoExtensionApi"
    );
    assert_eq!(cluster.condition("edge", "Programmed"), "True Served");
}

#[test]
fn the_older_of_two_policies_for_one_target_is_in_force_and_both_report_it() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("elder", GATEWAY));
    cluster.put(policy("younger", GATEWAY));
    cluster.settle();

    assert_eq!(cluster.names(), ["TrafficExtension/tidegate-elder"]);
    assert_eq!(
        cluster.condition("younger", "Programmed"),
        "False Overruled"
    );
    assert_eq!(cluster.condition("younger", "Conflicted"), "True Overruled");
    let overruled = cluster.status("younger").overruled;
    assert_eq!(overruled.len(), 1);
    assert_eq!(overruled[0].by, "shop/elder");
    assert_eq!(cluster.condition("elder", "Conflicted"), "False NoConflict");

    cluster.remove("elder");
    cluster.settle();
    assert_eq!(cluster.names(), ["TrafficExtension/tidegate-younger"]);
    assert_eq!(
        cluster.condition("younger", "Programmed"),
        "True Programmed"
    );
}

#[test]
fn a_policy_may_lose_one_of_its_targets() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("elder", GATEWAY));
    cluster.put(policy("two", TWO));
    cluster.settle();

    let refs = &cluster.objects[&key(NEW_API, "tidegate-two")]["spec"]["targetRefs"];
    assert_eq!(refs.as_array().unwrap().len(), 1);
    assert_eq!(cluster.condition("two", "Programmed"), "True Programmed");
    assert_eq!(
        cluster.condition("two", "Conflicted"),
        "True PartlyOverruled"
    );
}

#[test]
fn overlapping_policies_both_act_the_narrower_first() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("all", NAMESPACE));
    cluster.put(policy("web", WEB));
    cluster.put(policy("v2", WEB_V2));
    cluster.settle();

    let priority = |name| cluster.objects[&key(NEW_API, name)]["spec"]["priority"].clone();
    assert_eq!(priority("tidegate-all-all"), 0);
    assert_eq!(priority("tidegate-web"), 1);
    assert_eq!(priority("tidegate-v2"), 2);
    assert_eq!(cluster.condition("all", "Programmed"), "True Programmed");
    assert_eq!(cluster.condition("all", "Conflicted"), "True Overlapping");
    assert_eq!(cluster.condition("v2", "Conflicted"), "False NoConflict");
}

#[test]
fn an_invalid_change_leaves_the_last_valid_version_in_force() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let before = cluster.objects.clone();
    let mut wrong = policy("web", WEB);
    wrong["spec"]["limit"] = json!({"min": 20, "max": 10});
    cluster.put(wrong);

    assert_eq!(cluster.settle(), (0, 1));

    assert_eq!(cluster.objects, before);
    assert_eq!(cluster.condition("web", "Accepted"), "False Invalid");
    assert_eq!(cluster.condition("web", "Programmed"), "False Invalid");
    let message = cluster.message("web", "Accepted");
    assert!(message.contains("limit.max"), "{message}");
}

#[test]
fn a_policy_that_is_invalid_from_the_start_keeps_the_objects_of_another_replica() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let mut wrong = policy("web", WEB);
    wrong["spec"]["mode"] = json!("maybe");
    cluster.put(wrong);
    // After a restart the last valid version is unknown.
    for held in cluster.view.policies.values_mut() {
        held.valid = None;
    }

    cluster.settle();

    assert_eq!(cluster.names(), ["TrafficExtension/tidegate-web"]);
    assert_eq!(cluster.condition("web", "Programmed"), "False Invalid");
}

#[test]
fn a_failed_write_waits_longer_each_time_unless_something_changes() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    let mut waits = Vec::new();
    for _ in 0..12 {
        let plan = cluster.plan();
        let [ObjectWrite::Apply(wanted)] = plan.writes.as_slice() else {
            panic!("{plan:?}");
        };
        let subject = WriteSubject::Object(wanted.key.clone());
        let cause = WriteFailureCause::Rejected("no".to_owned());
        let now = cluster.now.instant;
        cluster
            .view
            .write_failed(subject, wanted.hash.clone(), cause, now);
        let plan = cluster.plan();
        assert_eq!(plan.writes, []);
        waits.push((plan.retry_at.unwrap() - now).as_secs());
        cluster.now.instant = plan.retry_at.unwrap();
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);

    cluster.now.instant -= std::time::Duration::from_secs(300);
    let mut changed = policy("web", WEB);
    changed["spec"]["mode"] = json!("observe");
    cluster.put(changed);
    assert_eq!(
        cluster.plan().writes.len(),
        1,
        "a changed policy is written at once"
    );
}

#[test]
fn failed_writes_are_reported_with_the_server_s_message() {
    for (cause, programmed, conflicted) in [
        (
            WriteFailureCause::Rejected("bad url".to_owned()),
            "False Rejected",
            "False NoConflict",
        ),
        (
            WriteFailureCause::FieldsTaken("conflict with \"kubectl\"".to_owned()),
            "False Conflicted",
            "True FieldsTaken",
        ),
        (
            WriteFailureCause::Failed,
            "False Failed",
            "False NoConflict",
        ),
    ] {
        let mut cluster = PlannedCluster::new(BOTH);
        cluster.put(policy("web", WEB));
        let Some(ObjectWrite::Apply(wanted)) = cluster.plan().writes.pop() else {
            panic!("nothing to write");
        };
        let subject = WriteSubject::Object(wanted.key);
        let now = cluster.now.instant;
        cluster
            .view
            .write_failed(subject, wanted.hash, cause.clone(), now);

        cluster.settle();

        assert_eq!(cluster.condition("web", "Programmed"), programmed);
        assert_eq!(cluster.condition("web", "Conflicted"), conflicted);
        if let WriteFailureCause::Rejected(words) = cause {
            assert!(cluster.message("web", "Programmed").contains(&words));
        }
    }
}

#[test]
fn a_webhook_s_change_is_reported_and_not_overwritten() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    let plan = cluster.plan();
    cluster.carry_out(plan);
    let object = key(NEW_API, "tidegate-web");
    // A webhook changed the object during the write.
    let written = cluster.view.written[&object].clone();
    let seen = cluster.view.objects.get_mut(&object).unwrap();
    seen.spec["wasm"]["failStrategy"] = json!("FAIL_CLOSE");
    assert_eq!(seen.resource_version, written.1);

    assert_eq!(cluster.settle(), (0, 1));

    assert_eq!(cluster.condition("web", "Conflicted"), "True Altered");
}

#[test]
fn conditions_keep_their_time_while_their_status_stays() {
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    let before = cluster.status("web");
    cluster.now.wall = jiff::Timestamp::from_second(1_000).unwrap();
    let mut wrong = policy("web", WEB);
    wrong["spec"]["mode"] = json!("maybe");
    cluster.put(wrong);

    let changes = cluster.plan().statuses[0].changes.clone();
    cluster.settle();

    let after = cluster.status("web");
    let at = |status: &tidegate_control::resource::BreakerPolicyStatus, index: usize| {
        status.conditions[index].last_transition_time.0
    };
    assert_eq!(at(&after, 0), cluster.now.wall, "Accepted has changed");
    assert_eq!(at(&after, 2), at(&before, 2), "Conflicted has not");
    let reasons: Vec<&str> = changes.iter().map(|t| t.state.reason.name()).collect();
    assert_eq!(reasons, ["Invalid", "Invalid"]);
    assert!(
        changes
            .iter()
            .all(tidegate_control::kube::status::ConditionChange::is_warning)
    );
}

#[test]
fn an_objective_out_of_reach_is_a_condition_only_while_a_graph_is_read() {
    let known = |policy: &str| {
        let upstreams = vec!["shop/cart".to_owned()];
        ReachFindings::Known(Arc::new([(policy.to_owned(), upstreams)].into()))
    };
    let mut cluster = PlannedCluster::new(BOTH);
    cluster.put(policy("web", WEB));
    cluster.settle();
    assert_eq!(cluster.status("web").conditions.len(), 3);
    for (reach, writes, expected) in [
        (ReachFindings::Unknown, 0, None),
        (known("shop/other"), 1, Some("False NotOutOfReach")),
        (known("shop/web"), 1, Some("True OutOfReach")),
        // The service does not know yet after a restart.
        (ReachFindings::Unknown, 0, Some("True OutOfReach")),
        (known("shop/web"), 0, Some("True OutOfReach")),
        (ReachFindings::Off, 1, None),
    ] {
        cluster.view.reach = reach.clone();
        assert_eq!(cluster.settle(), (0, writes), "{reach:?}");
        let found = cluster.status("web").conditions.into_iter();
        let found = found
            .filter(|condition| condition.type_ == "Unreachable")
            .map(|condition| format!("{} {}", condition.status, condition.reason))
            .next();
        assert_eq!(found.as_deref(), expected, "{reach:?}");
    }
}
