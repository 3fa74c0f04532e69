//! Errors as `application/problem+json` (RFC 9457), with the list of problems if there is one.

use std::io::ErrorKind;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tracing::error;

use crate::policy::Problem;
use crate::source::{ChangeError, StoreError};

/// An error without a list of problems.
pub(super) fn problem(status: StatusCode, detail: &str) -> Response {
    reply(status, detail, &[])
}

/// Why a policy was not changed.
pub(super) fn change_error(error: &ChangeError) -> Response {
    let problems = match error {
        ChangeError::Store(StoreError::Invalid(problems)) => problems.as_slice(),
        _ => &[],
    };
    let status = status(error);
    if status.is_server_error() {
        error!(%error, "a policy could not be stored; the stored version remains in force");
    }
    reply(status, &error.to_string(), problems)
}

fn status(error: &ChangeError) -> StatusCode {
    match error {
        ChangeError::HeldByFile => StatusCode::CONFLICT,
        ChangeError::NoStore => StatusCode::METHOD_NOT_ALLOWED,
        ChangeError::Store(StoreError::Invalid(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        ChangeError::Store(StoreError::Unknown) => StatusCode::NOT_FOUND,
        ChangeError::Store(StoreError::Changed) => StatusCode::PRECONDITION_FAILED,
        ChangeError::Store(StoreError::Unconditional) => StatusCode::PRECONDITION_REQUIRED,
        ChangeError::Store(StoreError::Write(error)) => match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

fn reply(status: StatusCode, detail: &str, problems: &[Problem]) -> Response {
    let mut body = json!({
        "type": "about:blank",
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": detail,
    });
    if let (Value::Object(body), false) = (&mut body, problems.is_empty()) {
        body.insert("problems".to_owned(), json!(problems));
    }
    let kind = HeaderValue::from_static("application/problem+json");
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_full_disk_has_a_status_of_its_own() {
        for (kind, expected) in [
            (ErrorKind::StorageFull, StatusCode::INSUFFICIENT_STORAGE),
            (ErrorKind::QuotaExceeded, StatusCode::INSUFFICIENT_STORAGE),
            (ErrorKind::NotFound, StatusCode::INTERNAL_SERVER_ERROR),
        ] {
            let error = StoreError::Write(io::Error::from(kind));
            assert_eq!(status(&error.into()), expected);
        }
    }
}
