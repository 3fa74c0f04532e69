//! Traces that a collector in this process receives.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use tidegate_supervise::{Process, Signal};
use tidegate_testbed::client::{Call, Caller};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::process::{serving, tidegate_in};
use crate::proxy::TestProxy;
use crate::stage::{BOUND, TOKEN, policy, until};

/// The trace and the parent span of a caller, from the specification of W3C Trace Context.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A span, with the name of its service.
type Seen = (String, Span);

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Seen>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for from in request.into_inner().resource_spans {
            let attributes = from.resource.unwrap_or_default().attributes;
            let service = text(&attributes, "service.name");
            let spans = from.scope_spans.into_iter().flat_map(|scope| scope.spans);
            let seen = spans.map(|span| (service.clone(), span));
            self.0.lock().unwrap().extend(seen);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start() -> (Self, SocketAddr) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let server = Server::builder().add_service(TraceServiceServer::new(collector.clone()));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        (collector, addr)
    }

    /// The first span with this name within the caller's trace.
    fn span(&self, name: &str) -> Option<Seen> {
        let seen = self.0.lock().unwrap();
        let is_it = |(_, span): &&Seen| span.name == name && hex(&span.trace_id) == TRACE;
        seen.iter().find(is_it).cloned()
    }
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.clone()?.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a service that has a state directory and sends traces to `collector`.
async fn service(
    folder: &Path,
    collector: SocketAddr,
) -> (Process, impl Fn(&str) -> SocketAddr + use<>) {
    let (state, token) = (folder.join("state"), folder.join("token"));
    std::fs::write(&token, TOKEN).unwrap();
    let arguments = [
        "--xds-listen=127.0.0.1:0",
        "--http-listen=127.0.0.1:0",
        "--health-listen=127.0.0.1:0",
        &format!("--state={}", state.display()),
        &format!("--token-file={}", token.display()),
    ];
    let endpoint = format!("http://{collector}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=tests",
        ),
    ];
    let mut process = tidegate_in(&arguments, &variables);
    let addresses = serving(&mut process).await;
    (process, addresses)
}

fn put(max: u32) -> Call {
    Call::put("/v1/policies/a", policy("a", "*", max))
        .header("authorization", &format!("Bearer {TOKEN}"))
        .header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_one_trace_from_the_request_to_the_proxys_answer() {
    let (collector, addr) = Collector::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (_process, port) = service(folder.path(), addr).await;
    let mut proxy = TestProxy::connect(port("xds"), "edge-7", "").await;
    proxy.pushed_and_accepted().await;

    let reply = Caller::http1(port("http")).call(&put(100)).await.unwrap();
    assert_eq!(reply.status, 201);
    let push = proxy.pushed().await;
    proxy
        .requests
        .send(TestProxy::rejection(&push, "no room"))
        .await
        .unwrap();

    until("the push was traced", async || {
        collector.span("push").is_some()
    })
    .await;
    let (service, request) = collector.span("PUT /v1/policies/{name}").unwrap();
    let (_, apply) = collector.span("apply").unwrap();
    let (_, render) = collector.span("render").unwrap();
    let (_, push) = collector.span("push").unwrap();
    assert_eq!(service, "tidegate");
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!(apply.parent_span_id, request.span_id);
    assert_eq!(render.parent_span_id, apply.span_id);
    assert_eq!(push.parent_span_id, render.span_id);
    assert_eq!(
        text(&request.attributes, "http.response.status_code"),
        "201"
    );
    assert_eq!(text(&render.attributes, "touched"), "1");
    assert_eq!(text(&push.attributes, "proxy"), "edge-7");
    assert_eq!(text(&push.attributes, "verdict"), "rejected");
    assert_eq!(push.status.unwrap().message, "no room");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_collector_affects_nothing_and_is_logged_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = nobody.local_addr().unwrap();
    drop(nobody);
    let folder = tempfile::tempdir().unwrap();
    let (mut process, port) = service(folder.path(), addr).await;
    let warnings = |process: &Process| {
        let message = "the trace collector does not accept spans";
        process.log().matches(message).count()
    };
    let http = Caller::http1(port("http"));
    let mut proxy = TestProxy::connect(port("xds"), "edge-7", "").await;
    proxy.pushed_and_accepted().await;
    assert_eq!(http.call(&put(100)).await.unwrap().status, 201);
    proxy.pushed_and_accepted().await;
    until("the failure is logged", async || warnings(&process) > 0).await;

    for _ in 0..20 {
        assert_eq!(http.get("/v1/proxies").await.unwrap().status, 200);
    }
    process.signal(Signal::TERM).unwrap();

    assert_eq!(process.wait(BOUND).await.unwrap().code(), Some(0));
    assert_eq!(warnings(&process), 1);
}
