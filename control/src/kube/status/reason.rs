//! The reasons of conditions: a closed list.

/// The reason of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The policy is valid.
    Accepted,
    /// The policy is invalid.
    Invalid,
    /// It names standalone proxies from a namespace where that is not allowed.
    ProxiesNotAllowed,
    /// It names a version of the module that the service's settings do not allow.
    ModuleNotAllowed,
    /// Istio's objects match the policy.
    Programmed,
    /// It applies to standalone proxies, which this service configures.
    Served,
    /// The proxies have it, but let every request pass: it says `enabled: false`, or all policies are off.
    Disabled,
    /// Other policies take all its targets.
    Overruled,
    /// The API server has neither of Istio's APIs, or not the one in the settings.
    NoExtensionApi,
    /// It conflicts with an object or with fields of another owner.
    Conflicted,
    /// The API server rejects the object, or the standalone proxies reject the configuration.
    Rejected,
    /// The API server could not be reached, or failed; the service retries.
    Failed,
    /// An object is being deleted and will be created again.
    Pending,
    /// There is no conflict.
    NoConflict,
    /// Another policy takes some of its targets.
    PartlyOverruled,
    /// Another policy applies to some of its workloads; both act there.
    Overlapping,
    /// Another policy with another version of the module applies to some of its workloads; they would run both versions.
    ModulesDiffer,
    /// An object with the same name belongs to someone else.
    NameTaken,
    /// Someone else owns fields of the object.
    FieldsTaken,
    /// Someone else added to the plugin's configuration or the selector in the object.
    FieldsAdded,
    /// The object was changed while it was written, for example by a webhook.
    Altered,
    /// Most requests to an upstream miss the target of the objective, for every caller.
    OutOfReach,
    /// No upstream is known for which the objective is out of reach.
    NotOutOfReach,
    /// A static pool is below `limit.min` of the policy.
    PoolBelowMinimum,
    /// A static pool is below `limit.max` of the policy.
    PoolBelowMaximum,
    /// No static pool is known that is tighter than the policy.
    NotConstrained,
}

impl Reason {
    /// Every value.
    pub const ALL: [Self; 26] = [
        Self::Accepted,
        Self::Invalid,
        Self::ProxiesNotAllowed,
        Self::ModuleNotAllowed,
        Self::Programmed,
        Self::Served,
        Self::Disabled,
        Self::Overruled,
        Self::NoExtensionApi,
        Self::Conflicted,
        Self::Rejected,
        Self::Failed,
        Self::Pending,
        Self::NoConflict,
        Self::PartlyOverruled,
        Self::Overlapping,
        Self::ModulesDiffer,
        Self::NameTaken,
        Self::FieldsTaken,
        Self::FieldsAdded,
        Self::Altered,
        Self::OutOfReach,
        Self::NotOutOfReach,
        Self::PoolBelowMinimum,
        Self::PoolBelowMaximum,
        Self::NotConstrained,
    ];

    /// The value of `reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Invalid => "Invalid",
            Self::ProxiesNotAllowed => "ProxiesNotAllowed",
            Self::ModuleNotAllowed => "ModuleNotAllowed",
            Self::Programmed => "Programmed",
            Self::Served => "Served",
            Self::Disabled => "Disabled",
            Self::Overruled => "Overruled",
            Self::NoExtensionApi => "NoExtensionApi",
            Self::Conflicted => "Conflicted",
            Self::Rejected => "Rejected",
            Self::Failed => "Failed",
            Self::Pending => "Pending",
            Self::NoConflict => "NoConflict",
            Self::PartlyOverruled => "PartlyOverruled",
            Self::Overlapping => "Overlapping",
            Self::ModulesDiffer => "ModulesDiffer",
            Self::NameTaken => "NameTaken",
            Self::FieldsTaken => "FieldsTaken",
            Self::FieldsAdded => "FieldsAdded",
            Self::Altered => "Altered",
            Self::OutOfReach => "OutOfReach",
            Self::NotOutOfReach => "NotOutOfReach",
            Self::PoolBelowMinimum => "PoolBelowMinimum",
            Self::PoolBelowMaximum => "PoolBelowMaximum",
            Self::NotConstrained => "NotConstrained",
        }
    }
}
