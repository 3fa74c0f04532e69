//! One service: it works for a time, calls its upstreams through its Envoy, and answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use tidegate_testbed::client::{Call, Caller};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::truth::{SeenRequest, Truth};

/// Header of an answer: how long the service had the request, in microseconds.
const HANDLED: &str = "x-handled-us";

/// What a service does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct {
    pub(crate) name: &'static str,
    /// How long it works before it calls its upstreams.
    pub(crate) work: Duration,
    /// Every n-th request fails, with this n.
    pub(crate) fails_each: Option<u64>,
    pub(crate) calls: &'static [ServiceCall],
}

/// A call of another service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceCall {
    pub(crate) upstream: &'static str,
    /// Whether the caller fails if this call fails.
    pub(crate) is_needed: bool,
}

/// The Envoy of a caller, and the record of each answer.
#[derive(Clone, Debug)]
pub(crate) struct Egress {
    pub(crate) name: &'static str,
    pub(crate) proxy: Caller,
    pub(crate) truth: Arc<Truth>,
}

impl Egress {
    /// Whether `upstream` answered without a failure. A request that the proxy did not accept is not recorded.
    pub(crate) async fn call(&self, upstream: &'static str) -> bool {
        let begun = Instant::now();
        let call = Call::get("/").authority(upstream);
        let Ok(reply) = self.proxy.call(&call).await else {
            return false;
        };
        let handled = reply.header(HANDLED).and_then(|text| text.parse().ok());
        let seen = SeenRequest {
            is_success: reply.status < 500,
            latency: begun.elapsed(),
            handled: handled.map(Duration::from_micros),
        };
        self.truth.note((self.name, upstream), seen);
        seen.is_success
    }
}

/// A running service; dropping it closes its port.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) addr: SocketAddr,
    listening: JoinHandle<()>,
}

impl Service {
    /// Serves on a free port. A service that calls others needs `egress`.
    pub(crate) async fn start(conduct: Conduct, egress: Option<Egress>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let number = Arc::new(AtomicU64::new(0));
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (number, egress) = (Arc::clone(&number), egress.clone());
                let serve = service_fn(move |_: Request<Incoming>| {
                    let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                    answer(conduct, number, egress.clone())
                });
                tokio::spawn(async move {
                    // This fails when the proxy closes the connection, which is allowed.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        });
        Ok(Self { addr, listening })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn answer(
    conduct: Conduct,
    number: u64,
    egress: Option<Egress>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let begun = Instant::now();
    sleep(conduct.work).await;
    let mut status = StatusCode::OK;
    for call in conduct.calls {
        let Some(egress) = &egress else { continue };
        if !egress.call(call.upstream).await && call.is_needed {
            status = StatusCode::BAD_GATEWAY;
        }
    }
    if conduct
        .fails_each
        .is_some_and(|each| number.is_multiple_of(each))
    {
        status = StatusCode::INTERNAL_SERVER_ERROR;
    }
    let mut response = Response::new(Full::new(Bytes::from_static(b"ok\n")));
    *response.status_mut() = status;
    let handled = begun.elapsed().as_micros().to_string();
    if let Ok(value) = handled.parse() {
        response.headers_mut().insert(HANDLED, value);
    }
    Ok(response)
}
