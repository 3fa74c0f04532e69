//! A simulated API server. It has objects in memory, lists, watches, and the writes that the tests need. Tests decide
//! what it rejects. It does not simulate field managers. The tests with a real server cover those.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tidegate_control::kube::istio::{IstioApi, ServedApis};
use tokio::sync::watch;

use crate::cluster::merge;

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// A request, as tests count them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) by: String,
    pub(crate) verb: &'static str,
    /// The plural name, followed by `/status` for a status.
    pub(crate) resource: String,
    pub(crate) name: String,
    /// Whether the request names a namespace.
    pub(crate) is_namespaced: bool,
}

/// The server; cheap to clone.
#[derive(Clone)]
pub(crate) struct ScriptedServer {
    state: Arc<Mutex<State>>,
    /// The number of changes so far.
    changes: Arc<watch::Sender<usize>>,
    down: Arc<watch::Sender<bool>>,
}

struct State {
    served: ServedApis,
    version: u64,
    objects: BTreeMap<(String, String, String), Value>,
    /// Version, resource, kind of event, and object.
    history: Vec<(u64, String, &'static str, Value)>,
    asked: Vec<Asked>,
    /// The answers to writes of a resource that the server rejects. A key that starts with `list` is for lists.
    refusals: BTreeMap<String, Value>,
    /// The largest number of objects in a page.
    page: usize,
}

impl ScriptedServer {
    pub(crate) fn new(served: ServedApis) -> Self {
        let state = State {
            served,
            version: 1,
            objects: BTreeMap::new(),
            history: Vec::new(),
            asked: Vec::new(),
            refusals: BTreeMap::new(),
            page: usize::MAX,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changes: Arc::new(watch::Sender::new(0)),
            down: Arc::new(watch::Sender::new(false)),
        }
    }

    /// A client. Requests are counted under the name `by`. While the returned switch is on, the client cannot reach the
    /// server.
    pub(crate) fn client(&self, by: &str) -> (Client, Arc<AtomicBool>) {
        let cut = Arc::new(AtomicBool::new(false));
        let (server, by, is_cut) = (self.clone(), by.to_owned(), Arc::clone(&cut));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, by, is_cut) = (server.clone(), by.clone(), Arc::clone(&is_cut));
            async move {
                let is_away = is_cut.load(Ordering::SeqCst) || *server.down.borrow();
                let answer = server.answer(&by, request, is_away).await;
                answer.ok_or_else(|| std::io::Error::other("the server cannot be reached"))
            }
        });
        (Client::new(service, "tidegate-system"), cut)
    }

    /// Makes the server and all watches unavailable, or available again.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.down.send_replace(is_down);
    }

    pub(crate) fn serve(&self, served: ServedApis) {
        self.state.lock().unwrap().served = served;
    }

    /// Sets the answer to writes of this resource, or lets them succeed again.
    pub(crate) fn refuse(&self, resource: &str, status: Option<Value>) {
        let mut state = self.state.lock().unwrap();
        match status {
            Some(status) => state.refusals.insert(resource.to_owned(), status),
            None => state.refusals.remove(resource),
        };
    }

    /// Sets the largest number of objects in a page of a list.
    pub(crate) fn pages_of(&self, objects: usize) {
        self.state.lock().unwrap().page = objects;
    }

    /// The number of requests so far for which `count` is true.
    pub(crate) fn count(&self, count: impl Fn(&Asked) -> bool) -> usize {
        let state = self.state.lock().unwrap();
        state.asked.iter().filter(|asked| count(asked)).count()
    }

    /// The number of writes so far, except for the lease.
    pub(crate) fn writes(&self) -> usize {
        let is_read = |asked: &Asked| ["list", "watch", "get", "discover"].contains(&asked.verb);
        self.count(|asked| !is_read(asked) && asked.resource != "leases")
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// The objects of a resource, sorted by name.
    pub(crate) fn objects(&self, resource: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let ours = state.objects.iter().filter(|(key, _)| key.0 == resource);
        ours.map(|(_, object)| object.clone()).collect()
    }

    pub(crate) fn object(&self, resource: &str, name: &str) -> Option<Value> {
        let mut objects = self.objects(resource).into_iter();
        objects.find(|object| object["metadata"]["name"] == name)
    }

    /// Applies an object, as a client.
    pub(crate) fn put(&self, resource: &str, object: &Value) {
        let mut state = self.state.lock().unwrap();
        let key = key_of(resource, object);
        state.store(key, object, false);
        drop(state);
        self.changes.send_modify(|n| *n += 1);
    }

    /// Deletes an object, as a client.
    pub(crate) fn remove(&self, resource: &str, name: &str) {
        let mut state = self.state.lock().unwrap();
        let key = (resource.to_owned(), "shop".to_owned(), name.to_owned());
        assert!(state.delete(&key), "{key:?}");
        drop(state);
        self.changes.send_modify(|n| *n += 1);
    }

    async fn answer(&self, by: &str, request: Request<Body>, is_away: bool) -> Option<Answer> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let path = Path::of(parts.uri.path());
        let verb = match (&parts.method, is_watch) {
            (&Method::GET, _) if path.resource.is_empty() => "discover",
            (&Method::GET, true) => "watch",
            (&Method::GET, false) if path.name.is_empty() => "list",
            (&Method::GET, false) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            _ => "delete",
        };
        let mut state = self.state.lock().unwrap();
        state.asked.push(Asked {
            by: by.to_owned(),
            verb,
            resource: format!("{}{}", path.resource, path.subresource),
            name: path.name.clone(),
            is_namespaced: !path.namespace.is_empty(),
        });
        if is_away {
            return None;
        }
        if verb == "watch" {
            drop(state);
            return Some(self.watch(path, &query));
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = state.respond(verb, &path, &query, &body);
        drop(state);
        self.changes.send_modify(|n| *n += 1);
        Some(answer)
    }

    fn watch(&self, path: Path, query: &str) -> Answer {
        let from = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("resourceVersion="));
        let from: u64 = from.unwrap().parse().unwrap();
        let (server, changes) = (self.clone(), self.changes.subscribe());
        let down = self.down.subscribe();
        let stream = futures_util::stream::unfold(
            (server, changes, down, from, path),
            |(server, mut changes, mut down, mut from, path)| async move {
                loop {
                    changes.borrow_and_update();
                    let next = server.state.lock().unwrap().after(from, &path);
                    if let Some((version, line)) = next {
                        from = version;
                        return Some((Ok(Frame::data(line)), (server, changes, down, from, path)));
                    }
                    tokio::select! {
                        _ = changes.changed() => {}
                        _ = down.wait_for(|down| *down) => return None,
                    }
                }
            },
        );
        Response::new(StreamBody::new(stream.boxed()).boxed_unsync())
    }
}

/// The parts of a request's path.
struct Path {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl Path {
    fn of(path: &str) -> Self {
        // The path is /apis/<group>/<version>[/namespaces/<namespace>]/<resource>[/<name>[/<subresource>]], or the same
        // after /api/<version>.
        let lead = if path.starts_with("/api/") { 3 } else { 4 };
        let mut steps = path.split('/').skip(lead).peekable();
        let mut namespace = String::new();
        if steps.peek() == Some(&"namespaces") {
            steps.next();
            namespace = steps.next().unwrap_or_default().to_owned();
        }
        let mut next = || steps.next().unwrap_or_default().to_owned();
        let (resource, name, sub) = (next(), next(), next());
        let subresource = if sub.is_empty() {
            sub
        } else {
            format!("/{sub}")
        };
        Self {
            resource,
            subresource,
            namespace,
            name,
        }
    }
}

impl State {
    fn respond(&mut self, verb: &str, path: &Path, query: &str, body: &Value) -> Answer {
        let key = (
            path.resource.clone(),
            path.namespace.clone(),
            path.name.clone(),
        );
        let is_write = !["list", "get", "discover"].contains(&verb);
        let lead = if is_write { "" } else { "list " };
        let whole = format!("{lead}{}{}", path.resource, path.subresource);
        if let Some(status) = self.refusals.get(&whole) {
            let code = u16::try_from(status["code"].as_u64().unwrap()).unwrap();
            return answer(code, status);
        }
        match verb {
            "discover" => self.discover(),
            "list" if self.is_served(&path.resource) => self.list(path, query),
            "get" => match self.objects.get(&key) {
                Some(object) => answer(200, object),
                None => failure(404, "NotFound"),
            },
            "create" => {
                let key = key_of_in(&path.resource, &path.namespace, body);
                if self.objects.contains_key(&key) {
                    return failure(409, "AlreadyExists");
                }
                answer(201, &self.store(key, body, false))
            }
            "update" => {
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                match self.objects.get(&key) {
                    Some(before) if version(before) == version(body) => {
                        self.objects.remove(&key);
                        answer(200, &self.store(key, body, false))
                    }
                    Some(_) => failure(409, "Conflict"),
                    None => failure(404, "NotFound"),
                }
            }
            "patch" if !path.subresource.is_empty() && !self.objects.contains_key(&key) => {
                failure(404, "NotFound")
            }
            "patch" => answer(200, &self.store(key, body, !path.subresource.is_empty())),
            "delete" if self.delete(&key) => {
                answer(200, &json!({"kind": "Status", "status": "Success"}))
            }
            _ => failure(404, "NotFound"),
        }
    }

    fn is_served(&self, resource: &str) -> bool {
        let mut flavours = IstioApi::ALL.into_iter();
        let api = flavours.find(|api| api.plural() == resource);
        api.is_none_or(|api| self.served.has(api))
    }

    fn discover(&self) -> Answer {
        let served = IstioApi::ALL
            .into_iter()
            .filter(|api| self.served.has(*api));
        let resources: Vec<Value> = served
            .map(|api| {
                json!({"name": api.plural(), "kind": api.kind(), "namespaced": true,
                    "singularName": "", "verbs": ["list"]})
            })
            .collect();
        if resources.is_empty() {
            return failure(404, "NotFound");
        }
        answer(
            200,
            &json!({"kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": "extensions.istio.io/v1alpha1", "resources": resources}),
        )
    }

    fn list(&self, path: &Path, query: &str) -> Answer {
        let mut pairs = query.split('&');
        let token = pairs.find_map(|pair| pair.strip_prefix("continue="));
        let from: usize = token.map_or(0, |token| token.parse().unwrap());
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|(key, _)| key.0 == path.resource)
            .filter(|(key, _)| path.namespace.is_empty() || key.1 == path.namespace)
            .map(|(_, object)| object)
            .collect();
        let version = self.version.to_string();
        let end = from.saturating_add(self.page).min(items.len());
        let next = (end < items.len()).then(|| end.to_string());
        answer(
            200,
            &json!({"kind": "List", "apiVersion": "v1", "items": items[from..end],
            "metadata": {"resourceVersion": version, "continue": next.unwrap_or_default()}}),
        )
    }

    fn store(&mut self, key: (String, String, String), body: &Value, is_status: bool) -> Value {
        self.version += 1;
        let before = self.objects.get(&key).cloned();
        let kind = if before.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        let mut object = before.clone().unwrap_or_else(|| {
            json!({"metadata": {
                "namespace": key.1, "generation": 0, "uid": format!("uid-{}", self.version),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }})
        });
        merge(&mut object, body);
        if before.as_ref().is_some_and(|before| *before == object) {
            return object;
        }
        let is_new = before.is_none_or(|before| before["spec"] != object["spec"]);
        let generation = object["metadata"]["generation"].as_i64().unwrap();
        let generation = generation + i64::from(is_new && !is_status);
        object["metadata"]["generation"] = json!(generation);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.history
            .push((self.version, key.0.clone(), kind, object.clone()));
        self.objects.insert(key, object.clone());
        object
    }

    fn delete(&mut self, key: &(String, String, String)) -> bool {
        let Some(mut object) = self.objects.remove(key) else {
            return false;
        };
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.history
            .push((self.version, key.0.clone(), "DELETED", object));
        true
    }

    /// The first event after version `from` for a watch of `path`.
    fn after(&self, from: u64, path: &Path) -> Option<(u64, Bytes)> {
        let mut events = self.history.iter();
        let (version, _, kind, object) = events.find(|(version, resource, _, object)| {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            *version > from
                && *resource == path.resource
                && (path.namespace.is_empty() || path.namespace == namespace)
        })?;
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        Some((*version, line.into()))
    }
}

fn key_of(resource: &str, object: &Value) -> (String, String, String) {
    let namespace = object["metadata"]["namespace"].as_str().unwrap();
    key_of_in(resource, namespace, object)
}

fn key_of_in(resource: &str, namespace: &str, object: &Value) -> (String, String, String) {
    let name = object["metadata"]["name"].as_str().unwrap();
    (resource.to_owned(), namespace.to_owned(), name.to_owned())
}

fn answer(code: u16, body: &Value) -> Answer {
    let body = Full::new(Bytes::from(body.to_string()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message})
}

fn failure(code: u16, reason: &str) -> Answer {
    answer(code, &status(code, reason, reason))
}
