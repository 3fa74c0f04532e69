//! The CPU time of an Envoy in the format of cAdvisor: read from `/proc`, with the labels of a pod.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming, server::conn::http1};
use hyper_util::rt::TokioIo;
use tidegate_testbed::envoy::Envoy;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::truth::now;

/// The labels of the pod in which the Envoy would run.
pub(crate) const POD: [(&str, &str); 2] = [("namespace", "shop"), ("pod", "edge-0")];

/// Each reading: its time in seconds since 1970, and the CPU time so far in seconds.
type Readings = Arc<Mutex<Vec<(f64, f64)>>>;

/// The running server; dropping it closes its port.
#[derive(Debug)]
pub(crate) struct Containers {
    pub(crate) addr: SocketAddr,
    readings: Readings,
    listening: JoinHandle<()>,
}

impl Containers {
    pub(crate) async fn start(envoy: &Arc<Envoy>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let (envoy, readings) = (Arc::clone(envoy), Readings::default());
        let noted = Arc::clone(&readings);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (envoy, readings) = (Arc::clone(&envoy), Arc::clone(&noted));
                let serve = service_fn(move |_: Request<Incoming>| {
                    let answer = answer(&envoy, &readings);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(async move {
                    // This fails when Prometheus closes the connection, which is allowed.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        });
        Ok(Self {
            addr,
            readings,
            listening,
        })
    }

    /// CPU time per second, from the first and the last reading after `from` and until `to`.
    pub(crate) fn rate(&self, from: f64, to: f64) -> f64 {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = readings.iter().filter(|(at, _)| *at > from && *at <= to);
        let first = inside.next().unwrap();
        let last = inside.next_back().unwrap();
        (last.1 - first.1) / (last.0 - first.0)
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn answer(envoy: &Envoy, readings: &Readings) -> Response<Full<Bytes>> {
    let seconds = envoy.cpu_time().unwrap().as_secs_f64();
    let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
    readings.push((now(), seconds));
    let [(namespace, shop), (pod, edge)] = POD;
    let text = format!(
        "# TYPE container_cpu_usage_seconds_total counter\n\
         container_cpu_usage_seconds_total{{container=\"envoy\",{namespace}=\"{shop}\",{pod}=\"{edge}\"}} {seconds}\n"
    );
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    // Prometheus rejects an answer without a content type.
    let format = HeaderValue::from_static("text/plain; version=0.0.4");
    answer.headers_mut().insert(CONTENT_TYPE, format);
    answer
}
