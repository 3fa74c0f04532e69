//! Requests to the REST interface.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use bolero::TypeGenerator;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::pieces;
use super::policies::PIECES;
use crate::discovery::fuzz::plugin;
use crate::fleet::ProxyFleet;
use crate::metrics::ControlMetrics;
use crate::net::Followed;
use crate::policy::{PolicyName, gather};
use crate::rest::{Desk, Listings, Token, WriteAccess, routes};
use crate::source::{Catalog, Precondition, Store};

const TOKEN: &str = "a token of the fuzzer's";
/// Names in paths; the documents of [`PIECES`] are called `a`, and `b` in a namespace.
const NAMES: [&str; 5] = ["a", "b", "c%2F", "A", "%00"];

#[derive(Debug, TypeGenerator)]
struct Call {
    #[generator(0..8_u8)]
    kind: u8,
    name: u8,
    #[generator(0..8_u8)]
    condition: u8,
    tag: Vec<u8>,
    /// Whether the body starts like a policy.
    is_policy: bool,
    body: Vec<u8>,
}

struct Server {
    runtime: Runtime,
    router: Router,
    catalog: Catalog,
    _directory: TempDir,
}

impl Server {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let token = directory.path().join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let metrics = Arc::new(ControlMetrics::default());
        let fleet = ProxyFleet::new(plugin(), metrics.fleet());
        let store = Store::open(directory.path().join("state")).unwrap();
        let catalog = Catalog::new(None, Some(store), fleet.clone(), metrics.sources());
        let desk = Desk {
            cluster: None,
            catalog: catalog.clone(),
            fleet,
            traffic: None,
            metrics,
            access: Arc::new(WriteAccess {
                token: Some(Followed::load(&token, Token::parse).unwrap()),
                writers: None,
            }),
            closing: CancellationToken::new(),
            listings: Listings::default(),
            watchers: Desk::watchers(),
        };
        Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
            router: routes(desk),
            catalog,
            _directory: directory,
        }
    }

    fn ask(&self, request: Request<Body>) -> (StatusCode, Bytes) {
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.unwrap();
            let status = response.status();
            (
                status,
                response.into_body().collect().await.unwrap().to_bytes(),
            )
        })
    }

    fn get(&self, path: &str) -> (StatusCode, Bytes) {
        self.ask(Request::get(path).body(Body::empty()).unwrap())
    }

    /// The names of the policies that the interface lists.
    fn listed(&self) -> Vec<String> {
        let (status, body) = self.get("/v1/policies");
        assert_eq!(status, StatusCode::OK);
        let listed: Value = serde_json::from_slice(&body).unwrap();
        let name = |policy: &Value| policy["name"].as_str().unwrap().to_owned();
        listed["policies"]
            .as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect()
    }

    fn clear(&self) {
        for policy in self.catalog.policies().iter() {
            self.catalog
                .remove(policy.name(), &Precondition::Present)
                .unwrap();
        }
    }
}

#[test]
fn rejected_bodies_change_nothing_and_accepted_ones_are_stored_unchanged() {
    let server = AssertUnwindSafe(Server::new());
    bolero::check!(name = "rest_bodies")
        .with_type::<Vec<Call>>()
        .with_iterations(150)
        .for_each(|calls: &Vec<Call>| {
            let mut stored = BTreeMap::new();
            for call in calls.iter().take(6) {
                check(&server, call, &mut stored);
            }
            assert_eq!(server.listed(), stored.keys().copied().collect::<Vec<_>>());
            server.clear();
        });
}

fn check(server: &Server, call: &Call, stored: &mut BTreeMap<&str, Vec<u8>>) {
    let name = NAMES[usize::from(call.name) % NAMES.len()];
    let path = format!("/v1/policies/{name}");
    let mut body = if call.is_policy {
        [PIECES[0], PIECES[1]].concat().into_bytes()
    } else {
        Vec::new()
    };
    body.extend(pieces::text(&call.body, &PIECES));
    let method = match call.kind {
        0 => Method::DELETE,
        1 => Method::POST,
        _ => Method::PUT,
    };
    let mut request = Request::builder()
        .method(method.clone())
        .uri(&path)
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Body::from(body.clone()))
        .unwrap();
    let condition = match call.condition {
        0 => Some((header::IF_NONE_MATCH, HeaderValue::from_static("*"))),
        1..4 => Some((header::IF_MATCH, HeaderValue::from_static("*"))),
        4 => HeaderValue::from_bytes(&call.tag)
            .ok()
            .map(|tag| (header::IF_MATCH, tag)),
        _ => None,
    };
    request.headers_mut().extend(condition);
    let (status, answer) = server.ask(request);
    match status {
        StatusCode::OK | StatusCode::CREATED => {
            assert_eq!(method, Method::PUT);
            let is_new = stored.insert(name, body.clone()).is_none();
            assert_eq!(is_new, status == StatusCode::CREATED);
            let gathered = gather([("body", body.as_slice())]);
            assert_eq!(gathered.problems, [], "accepted policies are valid");
            let named = PolicyName::new(None, name.to_owned());
            assert!(gathered.policies.get(&named).is_some() && gathered.policies.len() == 1);
        }
        StatusCode::NO_CONTENT => {
            assert_eq!(method, Method::DELETE);
            assert!(
                stored.remove(name).is_some(),
                "what is not there cannot be removed"
            );
        }
        StatusCode::METHOD_NOT_ALLOWED => assert_eq!(method, Method::POST),
        refused => check_refused(refused, &answer),
    }
    let (status, text) = server.get(&path);
    match stored.get(name) {
        Some(sent) => assert_eq!((status, &text[..]), (StatusCode::OK, &sent[..])),
        None => assert!(status.is_client_error(), "{status}"),
    }
}

fn check_refused(status: StatusCode, answer: &[u8]) {
    assert!(status.is_client_error(), "{status}");
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
        // The router rejects invalid names.
        assert_eq!(status, StatusCode::BAD_REQUEST);
        return;
    };
    assert_eq!(answer["status"], status.as_u16());
    assert!(
        answer["detail"]
            .as_str()
            .is_some_and(|detail| !detail.is_empty())
    );
    if status == StatusCode::UNPROCESSABLE_ENTITY {
        let problems = answer["problems"].as_array().unwrap();
        assert!(!problems.is_empty());
        assert!(
            problems
                .iter()
                .all(|problem| problem["path"].is_string() && problem["expected"].is_string())
        );
    }
}
