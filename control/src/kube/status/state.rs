//! The reconcile state of a policy: its objects, and the targets that other policies take from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::RejectedPolicy;
use crate::kube::istio::{IstioApi, ObjectKey};
use crate::kube::settings::ModuleNotAllowed;
use crate::kube::view::{PoolFindings, ReachFindings, WriteFailureCause};
use crate::policy::{Contest, PolicyName, Problem};
use crate::source::Shutoff;

/// The state of one object of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::kube) enum ObjectState {
    /// It matches its desired state.
    Current,
    /// It has to be written.
    Due,
    /// It is being deleted.
    Leaving,
    /// It belongs to someone else.
    Foreign,
    /// Someone else added a value at this path.
    Added(String),
    /// It was changed while it was written.
    Altered,
    /// Writing it failed.
    WriteFailed(WriteFailureCause),
}

/// The reconcile state of a policy.
#[derive(Clone, Debug, Default)]
pub(in crate::kube) struct ReconcileState {
    /// The API in use.
    pub(in crate::kube) api: Option<IstioApi>,
    /// The objects that it needs, with their states.
    pub(in crate::kube) objects: Vec<(ObjectKey, ObjectState)>,
    /// Set if it names standalone proxies from a namespace where that is not allowed.
    pub(in crate::kube) barred: Option<Problem>,
    /// Set if it names a version of the module that the settings do not have.
    pub(in crate::kube) module: Option<ModuleNotAllowed>,
    /// Contests with a policy whose workloads load another version of the module.
    pub(in crate::kube) modules_differ: Vec<Contest>,
    /// The targets that other policies take from it.
    pub(in crate::kube) contests: Vec<Contest>,
    /// Whether all policies are off, and what turned them off.
    pub(in crate::kube) shutoff: Shutoff,
    /// Which objectives are out of reach.
    pub(in crate::kube) reach: ReachFindings,
    /// Which policies a static pool constrains.
    pub(in crate::kube) pools: PoolFindings,
    /// The policies that the connected standalone proxies reject.
    pub(in crate::kube) rejected: Arc<BTreeMap<PolicyName, RejectedPolicy>>,
    /// Whether the API server has an object that the policy owns.
    pub(in crate::kube) has_objects: bool,
    /// Whether objects have to be written before its status can be reported.
    pub(in crate::kube) is_due: bool,
}
