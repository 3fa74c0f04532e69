//! Carries out a plan.
//!
//! Objects and statuses are written by server-side apply, without force for
//! Istio's objects: a field that another owner has set stays as it is, and the
//! server names the owner. The result of a write goes back into the view. Before
//! each write this replica checks that it still leads, and each write ends before
//! another replica could lead.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, Status};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, Error};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::client::error::describe;
use super::clock::ClockReading;
use super::event::{KubeEvent, WriteOutcome, WriteTarget};
use super::istio::{DesiredObject, ObjectKey};
use super::plan::{ObjectWrite, REMOVAL, StatusWrite, WritePlan};
use super::shared::SharedState;
use super::view::{ObservedObject, WriteFailureCause, WriteSubject};
use crate::event::EventSink;
use crate::policy::{API_VERSION, KIND};
use crate::resource::BreakerPolicy;

/// Takes the place of the hash for a status.
const STATUS: &str = "status";

/// The action of all Events.
const ACTION: &str = "Reconcile";

/// Longest note of an Event that Kubernetes accepts, in bytes.
const MAX_NOTE_BYTES: usize = 1_000;

/// Writes to the API server.
pub(super) struct ClusterWriter {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    pub(super) manager: String,
    /// Longest time of one write.
    pub(super) bound: Duration,
    pub(super) shared: SharedState,
    pub(super) events: EventSink<KubeEvent>,
    pub(super) closing: CancellationToken,
}

/// Why a write failed, and the error message.
struct FailedWrite(WriteFailureCause, String);

impl ClusterWriter {
    /// Carries out a plan while this replica leads. Returns whether all writes succeeded.
    pub(super) async fn carry_out(&self, plan: WritePlan) -> bool {
        let mut is_done = true;
        for write in plan.writes {
            if !self.may_continue() {
                return false;
            }
            is_done &= match write {
                ObjectWrite::Apply(desired) => self.apply(desired).await,
                ObjectWrite::Delete { key, uid } => self.delete(key, uid).await,
            };
        }
        for write in plan.statuses {
            if !self.may_continue() {
                return false;
            }
            is_done &= self.write_status(write).await;
        }
        is_done
    }

    fn may_continue(&self) -> bool {
        self.shared.may_write() && !self.closing.is_cancelled()
    }

    async fn apply(&self, desired: DesiredObject) -> bool {
        let api = self.objects(&desired.key);
        let params = PatchParams::apply(&self.manager);
        let patch = Patch::Apply(&desired.body);
        let written = self
            .bounded(api.patch(&desired.key.name, &params, &patch))
            .await;
        let DesiredObject { key, hash, .. } = desired;
        match written {
            Ok(object) => {
                info!(namespace = key.namespace, object = %key, hash, "applied");
                self.report(WriteTarget::Extension, WriteOutcome::Done);
                self.shared
                    .lock()
                    .applied(key, hash, ObservedObject::of(&object));
                true
            }
            Err(failed) => self.failed(
                WriteTarget::Extension,
                WriteSubject::Object(key),
                hash,
                failed,
            ),
        }
    }

    async fn delete(&self, key: ObjectKey, uid: String) -> bool {
        let api = self.objects(&key);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let deleted = self.bounded(api.delete(&key.name, &params)).await;
        match deleted {
            Ok(left) => {
                info!(namespace = key.namespace, object = %key, "removed");
                self.report(WriteTarget::Extension, WriteOutcome::Done);
                let mut view = self.shared.lock();
                match left.left() {
                    Some(object) => view.see_object(&object, key.api),
                    None => view.removed(&key),
                }
                true
            }
            Err(failed) => {
                let subject = WriteSubject::Object(key);
                self.failed(WriteTarget::Extension, subject, REMOVAL.to_owned(), failed)
            }
        }
    }

    async fn write_status(&self, write: StatusWrite) -> bool {
        let namespace = write.name.namespace().unwrap_or_default();
        let resource = ApiResource::erase::<BreakerPolicy>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        let body = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            // With the uid, the server rejects the write if the policy was replaced by another one of the same name.
            "metadata": {"name": write.name.name(), "namespace": namespace, "uid": write.uid},
            "status": write.status,
        });
        // The status belongs to this service, even if others have written to it.
        let params = PatchParams::apply(&self.manager).force();
        let patch = Patch::Apply(&body);
        let written = api.patch_status(write.name.name(), &params, &patch);
        match self.bounded(written).await {
            Ok(object) => {
                self.report(WriteTarget::Status, WriteOutcome::Done);
                self.shared.lock().status_written(&write.name, &object);
                self.publish(&write).await;
                true
            }
            Err(failed) => {
                let subject = WriteSubject::Status(write.name);
                self.failed(WriteTarget::Status, subject, STATUS.to_owned(), failed)
            }
        }
    }

    /// Sends Events for the changes of a status. A lost Event is not sent again, because the status says the same.
    async fn publish(&self, write: &StatusWrite) {
        let regarding = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(KIND.to_owned()),
            name: Some(write.name.name().to_owned()),
            namespace: write.name.namespace().map(str::to_owned),
            uid: Some(write.uid.clone()),
            ..ObjectReference::default()
        };
        for change in &write.changes {
            let (condition, state) = (change.condition.name(), &change.state);
            let reason = state.reason.name();
            info!(policy = %write.name, condition, is_true = state.is_true, reason, message = state.message, "condition");
            let event = Event {
                type_: match change.is_warning() {
                    true => EventType::Warning,
                    false => EventType::Normal,
                },
                reason: reason.to_owned(),
                note: Some(note(&state.message)),
                action: ACTION.to_owned(),
                secondary: None,
            };
            let published = self
                .bounded(self.recorder.publish(&event, &regarding))
                .await;
            let result = match published {
                Ok(()) => WriteOutcome::Done,
                Err(FailedWrite(_, error)) => {
                    warn!(policy = %write.name, error, "an Event could not be written");
                    WriteOutcome::Failed
                }
            };
            self.report(WriteTarget::Event, result);
        }
    }

    fn report(&self, target: WriteTarget, result: WriteOutcome) {
        self.events.send(KubeEvent::Written(target, result));
    }

    fn failed(
        &self,
        target: WriteTarget,
        subject: WriteSubject,
        hash: String,
        failed: FailedWrite,
    ) -> bool {
        let FailedWrite(cause, error) = failed;
        warn!(?subject, error, "a write failed");
        let result = match cause {
            WriteFailureCause::FieldsTaken(_) => WriteOutcome::Conflict,
            WriteFailureCause::Rejected(_) | WriteFailureCause::Failed => WriteOutcome::Failed,
        };
        self.report(target, result);
        let now = ClockReading::now().instant;
        self.shared.lock().write_failed(subject, hash, cause, now);
        false
    }

    fn objects(&self, key: &ObjectKey) -> Api<DynamicObject> {
        let resource = key.api.resource();
        Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
    }

    async fn bounded<T>(
        &self,
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, FailedWrite> {
        match tokio::time::timeout(self.bound, write).await {
            Ok(written) => written.map_err(|error| failure(&error)),
            Err(late) => Err(FailedWrite(WriteFailureCause::Failed, late.to_string())),
        }
    }
}

fn failure(error: &Error) -> FailedWrite {
    let Error::Api(status) = error else {
        return FailedWrite(WriteFailureCause::Failed, describe(error));
    };
    let message = status.message.clone();
    let cause = match status.code {
        409 if is_about_fields(status) => WriteFailureCause::FieldsTaken(message.clone()),
        // Other conflicts, rate limits and failures of the server are temporary.
        408 | 409 | 429 | 500.. => WriteFailureCause::Failed,
        _ => WriteFailureCause::Rejected(message.clone()),
    };
    FailedWrite(cause, message)
}

fn is_about_fields(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "FieldManagerConflict")
}

fn note(message: &str) -> String {
    let mut end = message.len().min(MAX_NOTE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default().to_owned()
}
