//! The reasons for the limit.

/// Why the limit is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitReason {
    /// Nothing is known yet.
    #[default]
    WarmUp,
    /// No queue stands: as many as the objective's latency affords.
    Burst,
    /// A queue stands: the knee.
    Knee,
    /// A queue stands, and this proxy's share of the knee is below one request: requests are granted one by one.
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
        Self::Burst,
        Self::Knee,
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
            Self::Burst => "burst",
            Self::Knee => "knee",
            Self::BelowOne => "below_one",
            Self::LoadFailures => "load_failures",
            Self::Bounds => "bounds",
            Self::Unreachable => "objective_unreachable",
        }
    }
}
