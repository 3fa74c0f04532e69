//! A request, its answer, and the exchange between the two.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};

use super::Caller;
use super::connection::{Connection, Tunnel};
use super::upload;
use crate::pace::Body;
use tidegate_sim::arrivals::Sending;

/// Why a call got no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No connection.
    #[error("connect to {addr}")]
    Connect {
        /// The address.
        addr: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// A waypoint opens no tunnel.
    #[error("CONNECT {service}: found status {status}, expected 200")]
    Tunnel {
        /// What was to be reached.
        service: SocketAddr,
        /// The waypoint's answer.
        status: u16,
    },
    /// The connection broke.
    #[error("exchange over HTTP")]
    Http(#[from] hyper::Error),
    /// The request cannot be written.
    #[error("build the request")]
    Request(#[from] hyper::http::Error),
}

/// A request to be sent.
#[derive(Debug, Clone)]
pub struct Call {
    method: Method,
    path: String,
    authority: Option<String>,
    headers: Vec<(String, String)>,
    body: Bytes,
    sending: Option<Sending>,
}

impl Call {
    /// `GET path`.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            authority: None,
            headers: Vec::new(),
            body: Bytes::new(),
            sending: None,
        }
    }

    /// `POST path` with a body.
    #[must_use]
    pub fn post(path: &str, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            ..Self::get(path)
        }
    }

    /// `POST path` with a body that takes its time, or never ends.
    #[must_use]
    pub fn upload(path: &str, sending: Sending) -> Self {
        Self {
            sending: Some(sending),
            ..Self::post(path, Bytes::new())
        }
    }

    /// `PUT path` with a body.
    #[must_use]
    pub fn put(path: &str, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::PUT,
            ..Self::post(path, body)
        }
    }

    /// `DELETE path`.
    #[must_use]
    pub fn delete(path: &str) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    /// A unary gRPC call with an empty message; `path` is `/package.Service/Method`.
    #[must_use]
    pub fn grpc(path: &str) -> Self {
        // One message frame: not compressed, length 0.
        Self::post(path, Bytes::from_static(&[0, 0, 0, 0, 0]))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
    }

    /// An upgrade to a websocket.
    #[must_use]
    pub fn websocket(path: &str) -> Self {
        Self::get(path)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the authority (`Host`); the address otherwise.
    #[must_use]
    pub fn authority(mut self, authority: &str) -> Self {
        self.authority = Some(authority.to_owned());
        self
    }

    /// The request; the time of its upload begins now.
    pub(super) fn request(&self, addr: SocketAddr) -> Result<Request<Body>, CallError> {
        let authority = self.authority.clone().unwrap_or_else(|| addr.to_string());
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(format!("http://{authority}{}", self.path))
            .body(match self.sending {
                Some(sending) => upload::body(sending),
                None => Full::new(self.body.clone()).boxed_unsync(),
            })?;
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().map_err(hyper::http::Error::from)?;
            let value = HeaderValue::from_str(value).map_err(hyper::http::Error::from)?;
            request.headers_mut().append(name, value);
        }
        Ok(request)
    }
}

/// A complete answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Trailers; empty when there were none.
    pub trailers: HeaderMap,
}

impl Reply {
    /// The value of a header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The response code details, where the proxy answered by itself; `None` for the upstream's answers.
    #[must_use]
    pub fn details(&self) -> Option<&str> {
        self.header(crate::envoy::DETAILS_HEADER)
    }

    /// gRPC status from the trailers, or from the headers of a reply without a body.
    #[must_use]
    pub fn grpc_status(&self) -> Option<u32> {
        let value = self
            .trailers
            .get("grpc-status")
            .or_else(|| self.headers.get("grpc-status"))?;
        value.to_str().ok()?.parse().ok()
    }
}

/// A request whose answer has begun; dropping it ends the exchange as a caller does that goes away.
#[derive(Debug)]
pub struct Exchange {
    response: Response<Incoming>,
    connection: Connection,
    caller: Caller,
}

impl Exchange {
    pub(super) const fn new(
        response: Response<Incoming>,
        connection: Connection,
        caller: Caller,
    ) -> Self {
        Self {
            response,
            connection,
            caller,
        }
    }

    /// HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Headers of the answer.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        while let Some(frame) = self.response.body_mut().frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Reads the answer to its end and keeps nothing of it.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn drain(mut self) -> Result<(), CallError> {
        while self.chunk().await?.is_some() {}
        self.caller.give_back(self.connection);
        Ok(())
    }

    /// Reads the answer to its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn finish(self) -> Result<Reply, CallError> {
        let (head, body) = self.response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        self.caller.give_back(self.connection);
        Ok(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes(),
            trailers,
        })
    }

    /// The bytes of an upgraded connection (after status 101).
    ///
    /// # Errors
    /// When the connection was not upgraded.
    pub async fn tunnel(self) -> Result<Tunnel, CallError> {
        Ok(Tunnel::new(
            hyper::upgrade::on(self.response).await?,
            self.connection,
        ))
    }
}
