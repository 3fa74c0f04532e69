//! Decides which clients may change policies: those with the token, or with a certificate with a name on the list of
//! writers.
//!
//! If neither is configured, no client may: write access for every client is not a safe default. Any certificate is not
//! enough, because then every proxy could change every policy.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use super::reply::problem;
use crate::net::{ClientNames, Followed, Peer};

/// A bearer token; only its hash is kept, so that it cannot be printed by mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// Parses the content of a token file.
    ///
    /// # Errors
    /// When the token is shorter than 16 bytes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < MIN_TOKEN_BYTES {
            return Err(format!(
                "expected a token of {MIN_TOKEN_BYTES} bytes or more"
            ));
        }
        Ok(Self(Sha256::digest(text).into()))
    }

    /// Compares hashes, so that the time of the comparison reveals nothing about the token.
    fn matches(&self, text: &str) -> bool {
        self.0 == <[u8; 32]>::from(Sha256::digest(text))
    }
}

const MIN_TOKEN_BYTES: usize = 16;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct WriteAccess {
    /// The token, if there is one.
    pub token: Option<Followed<Token>>,
    /// The clients that may write with their certificates.
    pub writers: Option<Followed<ClientNames>>,
}

impl WriteAccess {
    fn lists(&self, peer: &Peer) -> bool {
        let writers = self.writers.as_ref().map(Followed::current);
        writers.is_some_and(|writers| writers.contain(peer))
    }

    fn accepts(&self, bearer: &str) -> bool {
        let token = self.token.as_ref().map(Followed::current);
        token.is_some_and(|token| token.matches(bearer))
    }
}

/// Lets all reads pass, and the writes of authorized clients.
pub(super) async fn check(
    State(access): State<Arc<WriteAccess>>,
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
    if peer.is_some_and(|peer| access.lists(peer))
        || bearer.is_some_and(|text| access.accepts(text.trim()))
    {
        return next.run(request).await;
    }
    if access.token.is_none() {
        let reason = match access.writers {
            None => "writing is off: the control service has neither a token nor a list of writers",
            Some(_) => "writing needs a client certificate with a name on the list of writers",
        };
        return problem(StatusCode::FORBIDDEN, reason);
    }
    let mut unauthorized = problem(
        StatusCode::UNAUTHORIZED,
        "writing needs the bearer token, or a client certificate with a name on the list of writers",
    );
    let challenge = header::HeaderValue::from_static("Bearer realm=\"tidegate\"");
    unauthorized
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, challenge);
    unauthorized
}

/// The client that sent a request, for notes and the log.
pub(super) fn who(peer: Option<Extension<Peer>>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |Extension(peer)| peer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_matches_a_token_and_short_tokens_are_invalid() {
        let token = Token::parse("a long enough token\n").unwrap();
        assert!(token.matches("a long enough token"));
        assert!(!token.matches("another long token"));
        assert!(Token::parse("short").is_err());
    }
}
