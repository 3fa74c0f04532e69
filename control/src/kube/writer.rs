//! Carries out what was planned.
//!
//! Every write is by server-side apply, without force for Istio's objects: a
//! field that somebody else has set is theirs, and the server says whose. What
//! came of a write goes back into the world. Before each write it is asked
//! whether this replica still leads, and each has an end before anybody else
//! could lead.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, Status};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, Error};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::cause::words;
use super::counts::{Counts, Target, WriteResult};
use super::extension::{ObjectKey, Wanted};
use super::object::Seen;
use super::plan::{Plan, REMOVAL, StatusWrite, Write};
use super::refusal::{Cause, Subject};
use super::shared::{Shared, moment};
use crate::policy::{API_VERSION, KIND};
use crate::resource::BreakerPolicy;

/// In the place of the hash of a status.
const STATUS: &str = "status";

/// What an Event says was done.
const ACTION: &str = "Reconcile";

/// Longest note of an Event that Kubernetes takes, in bytes.
const MAX_NOTE_BYTES: usize = 1_000;

/// Writes.
pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) recorder: Recorder,
    pub(super) manager: String,
    /// Longest time that one write may take.
    pub(super) bound: Duration,
    pub(super) shared: Shared,
    pub(super) counts: Counts,
    pub(super) closing: CancellationToken,
}

/// A write that the server has not taken, in its words where it has any.
struct Refused(Cause, String);

impl Writer {
    /// Carries out a plan as long as this replica leads. Returns whether all was taken.
    pub(super) async fn carry_out(&self, plan: Plan) -> bool {
        let mut is_done = true;
        for write in plan.writes {
            if !self.may_go_on() {
                return false;
            }
            is_done &= match write {
                Write::Apply(wanted) => self.apply(wanted).await,
                Write::Delete { key, uid } => self.delete(key, uid).await,
            };
        }
        for write in plan.statuses {
            if !self.may_go_on() {
                return false;
            }
            is_done &= self.tell(write).await;
        }
        is_done
    }

    fn may_go_on(&self) -> bool {
        self.shared.may_write() && !self.closing.is_cancelled()
    }

    async fn apply(&self, wanted: Wanted) -> bool {
        let api = self.objects(&wanted.key);
        let params = PatchParams::apply(&self.manager);
        let patch = Patch::Apply(&wanted.body);
        let written = self
            .bounded(api.patch(&wanted.key.name, &params, &patch))
            .await;
        let Wanted { key, hash, .. } = wanted;
        match written {
            Ok(object) => {
                info!(namespace = key.namespace, object = %key, hash, "applied");
                self.counts.write(Target::Extension, WriteResult::Done);
                self.shared.lock().applied(key, hash, Seen::of(&object));
                true
            }
            Err(refused) => self.refused(Target::Extension, Subject::Object(key), hash, refused),
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
                self.counts.write(Target::Extension, WriteResult::Done);
                let mut world = self.shared.lock();
                match left.left() {
                    Some(object) => world.see_object(&object, key.flavour),
                    None => world.removed(&key),
                }
                true
            }
            Err(refused) => {
                let subject = Subject::Object(key);
                self.refused(Target::Extension, subject, REMOVAL.to_owned(), refused)
            }
        }
    }

    async fn tell(&self, write: StatusWrite) -> bool {
        let namespace = write.name.namespace().unwrap_or_default();
        let resource = ApiResource::erase::<BreakerPolicy>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        let body = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            // Not another policy of the same name.
            "metadata": {"name": write.name.name(), "namespace": namespace, "uid": write.uid},
            "status": write.status,
        });
        // The status is this service's own, whoever may have written into it.
        let params = PatchParams::apply(&self.manager).force();
        let patch = Patch::Apply(&body);
        let written = api.patch_status(write.name.name(), &params, &patch);
        match self.bounded(written).await {
            Ok(object) => {
                self.counts.write(Target::Status, WriteResult::Done);
                self.shared.lock().told(&write.name, &object);
                self.publish(&write).await;
                true
            }
            Err(refused) => {
                let subject = Subject::Status(write.name);
                self.refused(Target::Status, subject, STATUS.to_owned(), refused)
            }
        }
    }

    /// Events for what has changed by a new status. One that is lost is not sent again: the status tells the same.
    async fn publish(&self, write: &StatusWrite) {
        let regarding = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(KIND.to_owned()),
            name: Some(write.name.name().to_owned()),
            namespace: write.name.namespace().map(str::to_owned),
            uid: Some(write.uid.clone()),
            ..ObjectReference::default()
        };
        for transition in &write.transitions {
            let (condition, verdict) = (transition.condition.name(), &transition.verdict);
            let reason = verdict.reason.name();
            info!(policy = %write.name, condition, is_true = verdict.is_true, reason, verdict.message, "condition");
            let event = Event {
                type_: match transition.is_warning() {
                    true => EventType::Warning,
                    false => EventType::Normal,
                },
                reason: reason.to_owned(),
                note: Some(note(&verdict.message)),
                action: ACTION.to_owned(),
                secondary: None,
            };
            let published = self
                .bounded(self.recorder.publish(&event, &regarding))
                .await;
            let result = match published {
                Ok(()) => WriteResult::Done,
                Err(Refused(_, said)) => {
                    warn!(policy = %write.name, error = said, "an Event was not taken");
                    WriteResult::Failed
                }
            };
            self.counts.write(Target::Event, result);
        }
    }

    fn refused(&self, target: Target, subject: Subject, hash: String, refused: Refused) -> bool {
        let Refused(cause, said) = refused;
        warn!(?subject, error = said, "a write was not taken");
        let result = match cause {
            Cause::FieldsTaken(_) => WriteResult::Conflict,
            Cause::Rejected(_) | Cause::Failed => WriteResult::Failed,
        };
        self.counts.write(target, result);
        let now = moment().instant;
        self.shared.lock().refused(subject, hash, cause, now);
        false
    }

    fn objects(&self, key: &ObjectKey) -> Api<DynamicObject> {
        let resource = key.flavour.resource();
        Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
    }

    async fn bounded<T>(
        &self,
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Refused> {
        match tokio::time::timeout(self.bound, write).await {
            Ok(written) => written.map_err(|error| refusal(&error)),
            Err(late) => Err(Refused(Cause::Failed, late.to_string())),
        }
    }
}

fn refusal(error: &Error) -> Refused {
    let Error::Api(status) = error else {
        return Refused(Cause::Failed, words(error));
    };
    let said = status.message.clone();
    let cause = match status.code {
        409 if is_about_fields(status) => Cause::FieldsTaken(said.clone()),
        // Conflicts of another kind, waits and the server's own troubles pass.
        408 | 409 | 429 | 500.. => Cause::Failed,
        _ => Cause::Rejected(said.clone()),
    };
    Refused(cause, said)
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
