//! A client may change policies if it knows the token, or shows a certificate with a name on the list of writers.
//!
//! Without either configured nobody may: a control plane that anyone may write to is no default. A certificate
//! alone gives no right, or every proxy could change every policy.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use super::reply::problem;
use crate::net::{Followed, Names, Peer};

/// A bearer token; only its hash is kept, so that it cannot be shown by mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// A token as it stands in a file.
    ///
    /// # Errors
    /// That it is shorter than anyone should use (16 bytes).
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < MIN_TOKEN_BYTES {
            return Err(format!(
                "expected a token of {MIN_TOKEN_BYTES} bytes or more"
            ));
        }
        Ok(Self(Sha256::digest(text).into()))
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
    pub token: Option<Followed<Token>>,
    /// The clients that may write by their certificates.
    pub writers: Option<Followed<Names>>,
}

impl Access {
    fn knows(&self, peer: &Peer) -> bool {
        let writers = self.writers.as_ref().map(Followed::current);
        writers.is_some_and(|writers| writers.contain(peer))
    }

    fn takes(&self, bearer: &str) -> bool {
        let token = self.token.as_ref().map(Followed::current);
        token.is_some_and(|token| token.is(bearer))
    }
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
    let bearer = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if peer.is_some_and(|peer| access.knows(peer))
        || bearer.is_some_and(|text| access.takes(text.trim()))
    {
        return next.run(request).await;
    }
    if access.token.is_none() {
        let reason = match access.writers {
            None => "writing is off: the service has neither a token nor a list of writers",
            Some(_) => "writing needs a client certificate with a name on the list of writers",
        };
        return problem(StatusCode::FORBIDDEN, reason);
    }
    let mut refused = problem(
        StatusCode::UNAUTHORIZED,
        "writing needs the bearer token, or a client certificate with a name on the list of writers",
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
        let token = Token::parse("a long enough token\n").unwrap();
        assert!(token.is("a long enough token"));
        assert!(!token.is("another long token"));
        assert!(Token::parse("short").is_err());
    }
}
