//! The reasons for the limit.

/// Why the limit is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitReason {
    /// Nothing is known yet.
    #[default]
    WarmUp,
    /// No queue stands: as many as the objective's latency affords.
    Cruise,
    /// A queue stands: as few as keep the upstream busy.
    Hold,
    /// A queue stands, and this proxy's share is below one request: requests are granted one by one.
    BelowOne,
    /// A ceiling from failures that load causes.
    LoadFailures,
    /// The policy's bounds.
    Bounds,
    /// No queue stands, and shedding cannot make most answers meet the objective.
    Unreachable,
}

impl LimitReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::WarmUp,
        Self::Cruise,
        Self::Hold,
        Self::BelowOne,
        Self::LoadFailures,
        Self::Bounds,
        Self::Unreachable,
    ];

    /// The reason's name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Cruise => "cruise",
            Self::Hold => "hold",
            Self::BelowOne => "below_one",
            Self::LoadFailures => "load_failures",
            Self::Bounds => "bounds",
            Self::Unreachable => "objective_unreachable",
        }
    }
}
