//! `/v1/disabled`: the switch for all policies. PUT turns them off, with a note as the body; DELETE turns them on again.
//!
//! In a cluster REST writes it to the Lease, so that all replicas follow; otherwise to the state directory.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tracing::{error, info};

use super::Desk;
use super::access::who;
use super::policies::blocking;
use super::reply::{change_error, problem};
use crate::net::Peer;
use crate::source::{MAX_NOTE_BYTES, Shutoff, ShutoffSource};

/// What REST and the page show of the switch.
pub(super) fn shown(shutoff: &Shutoff) -> Value {
    let notes = shutoff.notes();
    let notes = notes.map(|(source, note)| json!({"source": source.name(), "note": note}));
    json!({"all": shutoff.is_off(), "by": notes.collect::<Vec<Value>>()})
}

pub(super) async fn read(State(desk): State<Desk>) -> Response {
    Json(shown(&desk.catalog.shutoff())).into_response()
}

pub(super) async fn put(
    State(desk): State<Desk>,
    peer: Option<Extension<Peer>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let text = match body {
        Ok(body) => String::from_utf8_lossy(&body).into_owned(),
        Err(rejection) => return problem(rejection.status(), &rejection.body_text()),
    };
    if text.len() > MAX_NOTE_BYTES {
        let reason = format!("expected a note of at most {MAX_NOTE_BYTES} bytes");
        return problem(StatusCode::UNPROCESSABLE_ENTITY, &reason);
    }
    let who = who(peer);
    let note = format!("{} (REST, {who}, {})", text.trim(), now());
    write(&desk, &who, Some(note.trim())).await
}

pub(super) async fn remove(State(desk): State<Desk>, peer: Option<Extension<Peer>>) -> Response {
    write(&desk, &who(peer), None).await
}

async fn write(desk: &Desk, who: &str, note: Option<&str>) -> Response {
    let action = match note {
        Some(_) => "disable-all",
        None => "enable-all",
    };
    if let Some(cluster) = &desk.cluster
        && let Err(reason) = cluster.write(note).await
    {
        error!(
            audit = action,
            by = who,
            reason,
            "the Lease could not be written"
        );
        let detail = format!("the Lease could not be written: {reason}");
        return problem(StatusCode::BAD_GATEWAY, &detail);
    }
    // Turning policies on also removes the file, which an operator may have written, even if REST writes to the Lease.
    let has_file = |(source, _): (ShutoffSource, &str)| source == ShutoffSource::File;
    let needs_file = match note {
        Some(_) => desk.cluster.is_none(),
        None => desk.cluster.is_none() || desk.catalog.shutoff().notes().any(has_file),
    };
    if needs_file {
        let (catalog, note) = (desk.catalog.clone(), note.map(str::to_owned));
        let written = blocking(move || catalog.write_shutoff(note.as_deref())).await;
        match written {
            Some(Ok(())) => {}
            Some(Err(error)) => return change_error(&error),
            None => return problem(StatusCode::INTERNAL_SERVER_ERROR, "the change was aborted"),
        }
    }
    info!(audit = action, by = who, note, "changed by REST");
    let shutoff = desk.catalog.shutoff();
    if note.is_none() && shutoff.is_off() {
        let detail = format!("the policies stay off for another reason: {shutoff}");
        return problem(StatusCode::CONFLICT, &detail);
    }
    Json(shown(&shutoff)).into_response()
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}
