//! A request whose answer has begun.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::HeaderMap;

use super::connection::{Connection, Tunnel};
use super::{CallError, CallReply, Caller};

/// A request whose answer has begun; dropping it ends the exchange as if the caller went away.
#[derive(Debug)]
pub struct OpenExchange {
    response: Response<Incoming>,
    connection: Connection,
    caller: Caller,
}

impl OpenExchange {
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

    /// Reads the answer to its end and discards it.
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
    pub async fn finish(self) -> Result<CallReply, CallError> {
        let (head, body) = self.response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        self.caller.give_back(self.connection);
        Ok(CallReply {
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
