//! What an upstream sends back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::Instant;

use crate::pace::{self, AnyBody};

/// gRPC status UNAVAILABLE.
const GRPC_UNAVAILABLE: u32 = 14;

/// How one request is answered when the test decides; slots and the waiting line do not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// A plain answer.
    Status {
        /// HTTP status.
        status: u16,
        /// Headers.
        headers: Vec<(String, String)>,
        /// Time until it is sent.
        after: Duration,
    },
    /// A gRPC answer: one empty message, and the status in trailers.
    Grpc {
        /// gRPC status.
        status: u32,
        /// Time until it is sent.
        after: Duration,
    },
    /// A gRPC answer without a message: the status in the headers.
    GrpcTrailersOnly {
        /// gRPC status.
        status: u32,
        /// Time until it is sent.
        after: Duration,
    },
    /// Headers at once, then pieces of a body at regular intervals (a server stream, or server-sent events).
    Stream {
        /// Number of pieces.
        chunks: u32,
        /// Interval between two pieces.
        every: Duration,
    },
    /// Nothing, ever.
    Hang,
    /// The connection (HTTP/2: the stream) is closed without an answer.
    Reset,
}

impl Script {
    /// A plain answer at once.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::Status {
            status,
            headers: Vec::new(),
            after: Duration::ZERO,
        }
    }

    /// 200 after some time.
    #[must_use]
    pub const fn after(after: Duration) -> Self {
        Self::Status {
            status: 200,
            headers: Vec::new(),
            after,
        }
    }

    /// A gRPC answer at once, with the status in trailers.
    #[must_use]
    pub const fn grpc(status: u32) -> Self {
        Self::Grpc {
            status,
            after: Duration::ZERO,
        }
    }

    /// Adds a header to a plain answer; the other kinds stay as they are.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// What a script sees of a request.
#[derive(Debug, Clone)]
pub struct RequestHead {
    /// Path without query.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Number of the request at this upstream, from 1.
    pub number: u64,
}

type ScriptFn = dyn Fn(&RequestHead) -> Option<Script> + Send + Sync;

/// A script of the test.
#[derive(Clone)]
pub(super) struct ScriptFor(Arc<ScriptFn>);

impl ScriptFor {
    pub(super) fn new(
        script: impl Fn(&RequestHead) -> Option<Script> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(script))
    }

    pub(super) fn answer(&self, head: &RequestHead) -> Option<Script> {
        (self.0)(head)
    }
}

impl fmt::Debug for ScriptFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptFor")
    }
}

pub(super) fn plain(status: u16, headers: &[(String, String)], text: &str) -> Response<AnyBody> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())).boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        set(response.headers_mut(), name, value);
    }
    response
}

/// A complete answer without a failure.
pub(super) fn ok(is_grpc: bool) -> Response<AnyBody> {
    if is_grpc {
        grpc(0)
    } else {
        plain(200, &[], "ok\n")
    }
}

pub(super) fn failure(status: u16, is_grpc: bool) -> Response<AnyBody> {
    if is_grpc {
        grpc_trailers_only(GRPC_UNAVAILABLE)
    } else {
        plain(status, &[], "failed\n")
    }
}

/// Headers 200, and a body that is written elsewhere.
pub(super) fn with_body(body: AnyBody, is_grpc: bool) -> Response<AnyBody> {
    let mut response = Response::new(body);
    let kind = if is_grpc {
        "application/grpc"
    } else {
        "text/event-stream"
    };
    set(response.headers_mut(), "content-type", kind);
    response
}

/// One empty message, then the status in trailers.
pub(super) fn grpc(status: u32) -> Response<AnyBody> {
    let mut trailers = HeaderMap::new();
    set(&mut trailers, "grpc-status", &status.to_string());
    let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 0]));
    let mut response = Response::new(
        message
            .with_trailers(async move { Some(Ok(trailers)) })
            .boxed_unsync(),
    );
    set(response.headers_mut(), "content-type", "application/grpc");
    response
}

pub(super) fn grpc_trailers_only(status: u32) -> Response<AnyBody> {
    let mut response = plain(200, &[], "");
    set(response.headers_mut(), "content-type", "application/grpc");
    set(response.headers_mut(), "grpc-status", &status.to_string());
    response
}

/// Pieces of a body at regular intervals; gRPC callers get messages and a status.
pub(super) fn stream(chunks: u32, every: Duration, is_grpc: bool) -> Response<AnyBody> {
    let (writer, body) = pace::body();
    tokio::spawn(async move {
        for number in 0..chunks {
            let data = if is_grpc {
                Bytes::from_static(&[0, 0, 0, 0, 0])
            } else {
                format!("{number}\n").into()
            };
            let is_due = writer.wait_until(Instant::now() + every).await;
            if !is_due || !writer.send(data).await {
                return;
            }
        }
        if is_grpc {
            let mut trailers = HeaderMap::new();
            set(&mut trailers, "grpc-status", "0");
            // The caller may be gone, which is no failure.
            writer.trailers(trailers).await;
        }
    });
    with_body(body, is_grpc)
}

pub(super) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
        headers.insert(name, value);
    }
}
