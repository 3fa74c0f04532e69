//! Who may change policies: whoever knows the token, or shows a client certificate.
//!
//! Without either configured nobody may: a control plane that anyone may write to is no default.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use super::reply::problem;
use crate::net::Peer;

/// A bearer token; only its hash is kept, so that it cannot be shown by mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// A token; `None` if it is shorter than anyone should use (16 bytes).
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (text.len() >= MIN_TOKEN_BYTES).then(|| Self(Sha256::digest(text).into()))
    }

    /// Hashes are compared: how long that takes says nothing of the token.
    fn is(&self, text: &str) -> bool {
        self.0 == <[u8; 32]>::from(Sha256::digest(text))
    }
}

const MIN_TOKEN_BYTES: usize = 16;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The token, if there is one.
    pub token: Option<Token>,
    /// Whether clients show certificates (those that came in are on the list already).
    pub takes_certificates: bool,
}

/// Lets reading pass, and writing by those who may.
pub(super) async fn check(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>();
    let has_certificate =
        access.takes_certificates && peer.is_some_and(|peer| !peer.identities.is_empty());
    let bearer = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let has_token = match (&access.token, bearer) {
        (Some(token), Some(text)) => token.is(text.trim()),
        _ => false,
    };
    if has_certificate || has_token {
        return next.run(request).await;
    }
    if access.token.is_none() && !access.takes_certificates {
        let reason = "writing is off: the service has neither a token nor client certificates";
        return problem(StatusCode::FORBIDDEN, reason);
    }
    let mut refused = problem(
        StatusCode::UNAUTHORIZED,
        "writing needs the bearer token or a client certificate",
    );
    let challenge = header::HeaderValue::from_static("Bearer realm=\"tidegate\"");
    refused
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, challenge);
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_text_alone_and_never_short() {
        let token = Token::new("a long enough token\n").unwrap();
        assert!(token.is("a long enough token"));
        assert!(!token.is("another long token"));
        assert_eq!(Token::new("short"), None);
    }
}
