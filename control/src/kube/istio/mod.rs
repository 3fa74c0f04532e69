//! Istio's objects: which of its two APIs carries the filter, and the objects that carry a policy.

mod api;
mod object;

pub use api::{ApiChoice, GROUP, IstioApi, ServedApis, VERSION};
pub use object::{DesiredObject, HASH_ANNOTATION, MANAGED_BY, ObjectKey, Owner, desired_objects};
