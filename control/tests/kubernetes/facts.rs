//! What the graph reads from Kubernetes, from files and from an API server.

use std::time::Duration;

use serde_json::Value;
use tidegate_control::cluster::{
    ClusterScope, bytes, cores, read_cluster, read_nodes, read_objects,
};
use tidegate_control::document::{documents, value_of};
use tidegate_control::kube::istio::ServedApis;
use tidegate_graph::{ClusterFacts, EndpointCounts};

use crate::server::{ScriptedServer, status};

const OBJECTS: &str = include_str!("../cluster/objects.yaml");

fn from_files(text: &str) -> ClusterFacts {
    let done = read_objects([("objects.yaml", text.as_bytes())]);
    assert_eq!(done.problems, Vec::<String>::new());
    done.objects.finish(Vec::new())
}

fn server() -> ScriptedServer {
    let server = ScriptedServer::new(ServedApis::default());
    for document in documents(OBJECTS.as_bytes()).0 {
        let mut object = value_of(document.root());
        let resource = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.entry("namespace").or_insert(Value::from(""));
        server.put(&resource, &object);
    }
    server
}

async fn read(server: &ScriptedServer, namespaces: &[&str]) -> ClusterFacts {
    let scope = ClusterScope {
        namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
    };
    read_cluster(&server.client("graph").0, &scope, Duration::from_secs(60)).await
}

#[test]
fn figures_are_those_of_the_pods_with_the_injected_proxies() {
    let facts = from_files(OBJECTS);

    let prices = &facts.workload("shop", "prices-v1").unwrap();
    assert_eq!(prices.kind, "Deployment");
    assert_eq!(prices.facts.replicas, Some(3));
    assert_eq!(prices.facts.requests.cpu_cores, Some(1.1));
    assert_eq!(prices.facts.requests.memory_bytes, Some((1024 + 128) << 20));
    assert_eq!(
        prices.facts.limits.cpu_cores, None,
        "no container has a CPU limit"
    );
    let counts = EndpointCounts {
        ready: 2,
        not_ready: 1,
    };
    assert_eq!(
        prices.facts.endpoints,
        Some(counts),
        "two ports and three Pods"
    );
    assert_eq!(prices.facts.nodes["node-c"], 1);
    let stock = facts.workload("shop", "stock-v1").unwrap();
    assert_eq!(
        stock.facts.requests.cpu_cores,
        Some(2.0),
        "from the template of the Deployment"
    );
    assert_eq!(stock.facts.endpoints, None);
    assert_eq!(facts.workload("shop", "old"), None, "its Pod has ended");
    let service = facts.service("shop", "prices").unwrap();
    assert_eq!(service.endpoints, counts);
    assert!(service.workloads.contains("prices-v1"));
    let open: Vec<bool> = facts.nodes.iter().map(|node| node.is_schedulable).collect();
    assert_eq!(open, [true, true, false]);
}

#[test]
fn yaml_and_json_and_any_order_say_the_same() {
    let mut items: Vec<Value> = documents(OBJECTS.as_bytes())
        .0
        .iter()
        .map(|document| value_of(document.root()))
        .collect();
    items.reverse();
    let json = serde_json::json!({"kind": "List", "items": items}).to_string();

    assert_eq!(from_files(&json), from_files(OBJECTS));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let text = "kind: Pod\nmetadata: {name: a}\nspec: {containers: 3}\n---\nkind: Secret\nmetadata: {name: b}\n---\n[";
    let list = r#"{"kind": "PodList", "items": [{"metadata": {"labels": 1}}]}"#;

    let done = read_objects([("a.yaml", text.as_bytes()), ("b.json", list.as_bytes())]);

    assert!(
        done.problems[0].starts_with("a.yaml:1:1: Pod a: invalid type: integer `3`"),
        "{:?}",
        done.problems
    );
    assert!(done.problems[1].contains("expected a Deployment, StatefulSet"));
    assert!(done.problems[2].starts_with("b.json: items[0]: Pod without a name: invalid type"));
    assert!(done.notes[0].starts_with("a.yaml:5:1: Secret b: skipped"));
}

#[tokio::test]
async fn an_api_server_says_the_same_as_files_page_by_page() {
    let server = server();
    server.pages_of(2);

    assert_eq!(read(&server, &[]).await, from_files(OBJECTS));
    assert_eq!(server.writes(), 0);
    let lists = server.count(|asked| asked.verb == "list" && asked.resource == "pods");
    assert_eq!(lists, 5, "nine Pods, two in each page");
}

#[tokio::test]
async fn namespaces_can_be_read_alone() {
    let facts = read(&server(), &["istio-system"]).await;

    assert_eq!(facts.workloads.len(), 1);
    assert_eq!(facts.nodes.len(), 3, "nodes are in no namespace");
}

#[tokio::test]
async fn missing_rights_and_a_server_that_is_down_leave_gaps_that_are_named() {
    let server = server();
    let refusal = status(
        403,
        "Forbidden",
        "nodes is forbidden: User \"me\" cannot list",
    );
    server.refuse("list nodes", Some(refusal));

    let facts = read(&server, &[]).await;
    assert_eq!(facts.unread.len(), 1);
    assert!(facts.unread[0].starts_with("nodes: "), "{:?}", facts.unread);
    assert!(
        facts.unread[0].contains("is forbidden"),
        "{:?}",
        facts.unread
    );
    assert_eq!(facts.workloads, from_files(OBJECTS).workloads);

    server.set_down(true);
    let facts = read(&server, &[]).await;
    assert_eq!((facts.unread.len(), facts.workloads.len()), (6, 0));
}

#[test]
fn quantities_have_decimal_and_binary_units() {
    for (text, expected) in [
        ("2", Some(2.0)),
        ("250m", Some(0.25)),
        ("0.1", Some(0.1)),
        ("1k", Some(1_000.0)),
        ("12e6", Some(12e6)),
        ("1E3", Some(1_000.0)),
        ("", None),
        ("-1", None),
        ("1 Gi", None),
        ("Gi", None),
        ("1x", None),
        ("1e", None),
        ("1é", None),
        ("1e999", None),
    ] {
        assert_eq!(cores(text), expected, "{text}");
    }
    assert_eq!(bytes("1.5Gi"), Some(3 << 29));
    assert_eq!(bytes("128Mi"), Some(128 << 20));
    assert_eq!(bytes("129M"), Some(129_000_000));
}

#[test]
fn nodes_are_read_from_a_short_list_and_from_objects() {
    let short = "nodes:\n- {name: a, cpu: 3500m, memory: 16Gi}\n- {name: b, cpu: 4, memory: 8Gi}\n";
    let objects =
        "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 3500m, memory: 16Gi}}\n";

    let found = read_nodes("n.yaml", short.as_bytes()).unwrap();

    assert_eq!(found[1].allocatable.cpu_cores, Some(4.0));
    let of_objects = read_nodes("n.yaml", objects.as_bytes()).unwrap();
    assert_eq!(of_objects, found[..1]);
    let wrong = "nodes:\n- {name: a, cpu: much, memory: 16Gi}\n- {cpu: 1, memory: -1}\n";
    let error = read_nodes("n.yaml", wrong.as_bytes()).unwrap_err();
    assert_eq!(
        error,
        "n.yaml:2:13: nodes[0].cpu: found \"much\", expected CPU such as 4 or 3500m\n\
         n.yaml:3:3: nodes[1].name: found nothing, expected the name of a node\n\
         n.yaml:3:12: nodes[1].memory: found -1, expected memory such as 16Gi"
    );
    let none = read_nodes("n.yaml", b"").unwrap_err();
    assert!(none.contains("found no nodes"), "{none}");
}
