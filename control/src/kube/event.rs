//! The events that the Kubernetes controller reports to its listeners, such as the metrics.

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeEvent {
    /// The cluster was compared with its desired state.
    Reconciled(ReconcileResult),
    /// Something was written, or the attempt failed.
    Written(WriteTarget, WriteOutcome),
    /// A list, a watch or a discovery failed. Names the resource, or is [`DISCOVERY`].
    WatchFailed(&'static str),
    /// Whether this replica leads. Reported whenever the Lease is read.
    Leading(bool),
}

/// The name under which failed discoveries are reported, next to the names of the watched resources.
pub const DISCOVERY: &str = "discovery";

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteTarget {
    /// One of Istio's objects.
    Extension,
    /// The status of a policy.
    Status,
    /// An Event.
    Event,
    /// The Lease.
    Lease,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteOutcome {
    /// The server accepted it.
    Done,
    /// Another writer was first.
    Conflict,
    /// It failed for another reason.
    Failed,
}

/// The result of a comparison of the cluster with its desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReconcileResult {
    /// There was nothing to write.
    Unchanged,
    /// Everything was written.
    Written,
    /// At least one write failed.
    Failed,
}

impl ReconcileResult {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Unchanged, Self::Written, Self::Failed];

    /// The label value in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Written => "written",
            Self::Failed => "failed",
        }
    }
}

impl WriteTarget {
    /// Every value.
    pub const ALL: [Self; 4] = [Self::Extension, Self::Status, Self::Event, Self::Lease];

    /// The label value in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Status => "status",
            Self::Event => "event",
            Self::Lease => "lease",
        }
    }
}

impl WriteOutcome {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Done, Self::Conflict, Self::Failed];

    /// The label value in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        }
    }
}
