//! A request and its answer.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};

use super::headers::DETAILS_HEADER;
use super::upload;
use crate::pace::AnyBody;
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
    /// A waypoint did not open a tunnel.
    #[error("CONNECT {service}: found status {status}, expected 200")]
    Tunnel {
        /// The service to be reached.
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

    /// `POST path` with a body that is sent slowly, or never ends.
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

    /// Sets the authority (`Host`; default: the address).
    #[must_use]
    pub fn authority(mut self, authority: &str) -> Self {
        self.authority = Some(authority.to_owned());
        self
    }

    /// Builds the request; the duration of its upload begins now.
    pub(super) fn request(&self, addr: SocketAddr) -> Result<Request<AnyBody>, CallError> {
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
pub struct CallReply {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Trailers; empty when there were none.
    pub trailers: HeaderMap,
}

impl CallReply {
    /// The value of a header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The response code details, if the proxy answered by itself; `None` for the upstream's answers.
    #[must_use]
    pub fn details(&self) -> Option<&str> {
        self.header(DETAILS_HEADER)
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
