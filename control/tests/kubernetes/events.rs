//! The Events of a policy that `kubectl describe` shows: one Event for each transition of a condition, and no others.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_control::fleet::{DiscoveryApi, StreamOrigin, StreamSeat};
use tidegate_control::policy::ProxyNode;
use tidegate_control::xds::{PushReply, Rejection};

use crate::cluster::{BOTH, PROXIES, WEB, policy};
use crate::replica::{TestReplica, pass, until};
use crate::server::{ScriptedServer, status};

/// Long enough for several retries after a failed write.
const A_WHILE: Duration = Duration::from_secs(600);

/// How often each reason was reported for the policy `web`. Repetitions may be counted in one Event.
fn told(server: &ScriptedServer) -> BTreeMap<String, u64> {
    let mut told = BTreeMap::new();
    for event in server.objects("events") {
        if event["regarding"]["name"] == "web" {
            let reason = event["reason"].as_str().unwrap().to_owned();
            *told.entry(reason).or_default() += event["series"]["count"].as_u64().unwrap_or(1);
        }
    }
    told
}

/// Lets ten minutes pass, and checks that exactly these reasons have been reported, each this many times.
async fn just(server: &ScriptedServer, expected: &[(&str, u64)]) {
    pass(A_WHILE).await;
    let expected = expected
        .iter()
        .map(|(reason, count)| ((*reason).to_owned(), *count));
    assert_eq!(told(server), expected.collect());
}

/// The policy `web` with these bounds of its limit.
fn limited(min: u32, max: u32) -> Value {
    let mut policy = policy("web", WEB);
    policy["spec"]["limit"] = json!({"min": min, "max": max});
    policy
}

#[tokio::test(start_paused = true)]
async fn a_rejection_by_a_standalone_proxy_is_one_event() {
    let server = ScriptedServer::new(BOTH);
    let replica = TestReplica::start(&server, "one");
    server.put("breakerpolicies", &policy("web", PROXIES));
    just(&server, &[("Accepted", 1), ("Served", 1)]).await;
    let node = ProxyNode {
        id: "edge-1".to_owned(),
        ..ProxyNode::default()
    };
    let origin = StreamOrigin {
        api: DiscoveryApi::Ecds,
        dialect: "sotw",
        peer: String::new(),
    };
    let mut seat = StreamSeat::take(&replica.fleet, node, origin);
    let desired = seat.desired();
    let resource = desired.iter().next().unwrap();
    let answered = vec![(resource.name.clone(), Some(resource.version.clone()))];

    let rejection = PushReply::Rejected(answered.clone(), Rejection::new(13, "no"));
    seat.record(&rejection, |_| true, |_| None);
    just(&server, &[("Accepted", 1), ("Rejected", 1), ("Served", 1)]).await;

    let accepted = PushReply::Accepted(answered);
    seat.record(&accepted, |_| true, |_| Some(&resource.version));
    just(&server, &[("Accepted", 1), ("Rejected", 1), ("Served", 2)]).await;
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_transition_of_a_policy_is_one_event() {
    let server = ScriptedServer::new(BOTH);
    let replica = TestReplica::start(&server, "one");
    server.put("breakerpolicies", &policy("web", WEB));
    just(&server, &[("Accepted", 1), ("Programmed", 1)]).await;

    // Another configuration is in force. No condition has changed, and Events of other policies do not count.
    server.put("breakerpolicies", &limited(5, 10));
    server.put("breakerpolicies", &policy("younger", WEB));
    just(&server, &[("Accepted", 1), ("Programmed", 1)]).await;

    // Two conditions change with this reason: `Accepted` and `Programmed`.
    server.put("breakerpolicies", &limited(20, 10));
    just(
        &server,
        &[("Accepted", 1), ("Invalid", 2), ("Programmed", 1)],
    )
    .await;

    // Another owner holds a field. The repeated attempts are reported only once.
    let mut taken = status(409, "Conflict", "conflict with kubectl");
    taken["details"] = json!({"causes": [{"reason": "FieldManagerConflict"}]});
    server.refuse("trafficextensions", Some(taken));
    server.put("breakerpolicies", &limited(1, 10));
    let known = [
        ("Accepted", 2),
        ("Conflicted", 1),
        ("FieldsTaken", 1),
        ("Invalid", 2),
    ];
    just(&server, &[&known[..], &[("Programmed", 1)]].concat()).await;

    server.refuse("trafficextensions", None);
    let known = [&known[..], &[("NoConflict", 1), ("Programmed", 2)]].concat();
    just(&server, &known).await;

    replica.stop().await;
    let replica = TestReplica::start(&server, "two");
    until("the other leads", || replica.metric("leading") == 1).await;
    just(&server, &known).await;

    server.remove("breakerpolicies", "web");
    just(&server, &known).await;
    replica.stop().await;
}
