//! `/v1/policies`: list, read, put and delete.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tracing::{Span, info};

use super::access::who;
use super::reply::{change_error, problem};
use super::{Desk, listing};
use crate::document::{documents, value_of};
use crate::net::Peer;
use crate::policy::PolicyName;
use crate::source::Precondition;

pub(super) async fn list(State(desk): State<Desk>) -> Response {
    let revision = desk.revision();
    let make = || {
        json!({
            "policies": desk.catalog.records(),
            "problems": desk.catalog.problems(),
        })
    };
    listing::json(desk.listings.policies.at(revision, make))
}

/// Returns the policy as it was sent (YAML), or as JSON if the client accepts that.
pub(super) async fn read(
    State(desk): State<Desk>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(stored) = desk.catalog.stored(&PolicyName::new(None, name)) else {
        return problem(
            StatusCode::NOT_FOUND,
            "no policy of this name was stored by REST",
        );
    };
    let wants_json = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kinds| kinds.contains("application/json"));
    let tag = format!("\"{}\"", stored.tag);
    if wants_json {
        let (found, _) = documents(&stored.text);
        let value = found.first().map(|document| value_of(document.root()));
        return ([(header::ETAG, tag)], Json(value)).into_response();
    }
    let kind = "application/yaml".to_owned();
    let headers = [(header::ETAG, tag), (header::CONTENT_TYPE, kind)];
    (headers, stored.text.to_vec()).into_response()
}

pub(super) async fn put(
    State(desk): State<Desk>,
    Path(name): Path<String>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return problem(rejection.status(), &rejection.body_text()),
    };
    let precondition = match precondition(&headers) {
        Ok(precondition) => precondition,
        Err(response) => return *response,
    };
    let name = PolicyName::new(None, name);
    let (policy, by) = (name.to_string(), who(peer));
    let changed = blocking(move || desk.catalog.put(&name, &body, &precondition)).await;
    match changed {
        Some(Ok((tag, is_new))) => {
            info!(audit = "put-policy", policy, by, %tag, "changed by REST");
            let status = if is_new {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            (status, [(header::ETAG, format!("\"{tag}\""))]).into_response()
        }
        Some(Err(error)) => change_error(&error),
        None => problem(StatusCode::INTERNAL_SERVER_ERROR, "the change was aborted"),
    }
}

pub(super) async fn remove(
    State(desk): State<Desk>,
    Path(name): Path<String>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response {
    let precondition = match precondition(&headers) {
        Ok(precondition) => precondition,
        Err(response) => return *response,
    };
    let name = PolicyName::new(None, name);
    let (policy, by) = (name.to_string(), who(peer));
    match blocking(move || desk.catalog.remove(&name, &precondition)).await {
        Some(Ok(())) => {
            info!(audit = "remove-policy", policy, by, "changed by REST");
            StatusCode::NO_CONTENT.into_response()
        }
        Some(Err(error)) => change_error(&error),
        None => problem(StatusCode::INTERNAL_SERVER_ERROR, "the change was aborted"),
    }
}

/// Runs work that blocks or takes long. It continues if the client disconnects; `None` if it panicked.
pub(super) async fn blocking<T: Send + 'static>(
    change: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // The spans of the work belong to the request.
    let span = Span::current();
    let change = move || span.in_scope(change);
    tokio::task::spawn_blocking(change).await.ok()
}

fn precondition(headers: &HeaderMap) -> Result<Precondition, Box<Response>> {
    let text = |name: HeaderName| match headers.get(name) {
        Some(value) => value
            .to_str()
            .map(Some)
            .map_err(|_| "the header is not valid text"),
        None => Ok(None),
    };
    let both = text(header::IF_MATCH).and_then(|m| Ok((m, text(header::IF_NONE_MATCH)?)));
    let wrong = match both {
        Ok((None, None)) => return Ok(Precondition::None),
        Ok((None, Some("*"))) => return Ok(Precondition::Absent),
        Ok((Some("*"), None)) => return Ok(Precondition::Present),
        Ok((Some(tags), None)) => return Ok(Precondition::Tagged(tags_in(tags))),
        Ok((None, Some(_))) => "If-None-Match: expected *",
        Ok((Some(_), Some(_))) => "If-Match and If-None-Match: expected one of them",
        Err(reason) => reason,
    };
    Err(Box::new(problem(StatusCode::BAD_REQUEST, wrong)))
}

/// The strong tags of a list; weak ones never match in `If-Match` (RFC 9110, 13.1.1).
fn tags_in(list: &str) -> Vec<String> {
    let tag = |item: &str| Some(item.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned());
    list.split(',').filter_map(tag).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(entries: &[(HeaderName, &'static str)]) -> HeaderMap {
        let value = |(name, value): &(HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        entries.iter().map(value).collect()
    }

    #[test]
    fn preconditions_are_read_from_headers() {
        let (matching, none) = (header::IF_MATCH, header::IF_NONE_MATCH);
        let tags = vec!["a".to_owned(), "c".to_owned()];
        for (given, expected) in [
            (headers(&[]), Precondition::None),
            (headers(&[(none.clone(), "*")]), Precondition::Absent),
            (headers(&[(matching.clone(), "*")]), Precondition::Present),
            (
                headers(&[(matching.clone(), r#""a", W/"b", "c""#)]),
                Precondition::Tagged(tags),
            ),
        ] {
            assert_eq!(precondition(&given).unwrap(), expected);
        }
        for given in [
            headers(&[(none.clone(), "\"a\"")]),
            headers(&[(none, "*"), (matching, "*")]),
        ] {
            assert!(precondition(&given).is_err());
        }
    }
}
