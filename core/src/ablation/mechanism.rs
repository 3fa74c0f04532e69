//! What can be turned off, one line for each.

/// Defines the enum, its list and its words from one table.
macro_rules! mechanisms {
    ($(#[doc = $what:literal] $variant:ident = $name:literal,)+) => {
        /// A mechanism of the limit or of the breaker.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mechanism {
            $(#[doc = $what] $variant,)+
        }

        impl Mechanism {
            /// Every mechanism.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name in tables and on command lines: stable, kebab-case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it does, in one line.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what.trim(),)+
                }
            }
        }
    };
}

mechanisms! {
    // The latency without load.
    /// The baseline keeps learning from windows without a queue.
    BaselineDrift = "baseline-drift",
    /// A window that is faster than the baseline teaches it at once.
    BaselineFaster = "baseline-faster",
    /// The first windows teach the baseline until slow answers are among them.
    Forming = "forming",
    /// A baseline that was learned while requests were refused is not trusted.
    Proof = "proof",
    /// Refusals prove nothing against the baseline where there is room or latency is harmless.
    ProofExcuses = "proof-excuses",
    /// A baseline that is not trusted is sought from above.
    Seek = "seek",
    /// A cut that brings latency far below the baseline starts the search again.
    SeekAgain = "seek-again",
    /// Windows with a remnant of a queue do not teach the baseline.
    Remnant = "remnant",

    // Capacity.
    /// A throughput that chance does not explain moves the capacity faster.
    SurpriseWeight = "surprise-weight",
    /// A lower capacity is believed only from windows that were full throughout.
    FullWindows = "full-windows",
    /// The knee is entered with the capacity from before the queue, where that was greater.
    BeforeTheQueue = "before-the-queue",
    /// Once a queue has shown the capacity, the least burst limit is a quarter of the initial limit.
    Shown = "shown",
    /// After an outage the knee starts with a quarter of the initial limit at the least.
    RestartFloor = "restart-floor",
    /// Before anything is known the limit is twice the initial one.
    ColdFactor = "cold-factor",
    /// The burst limit does not fall below the initial limit (or the quarter of `shown`).
    InitialFloor = "initial-floor",
    /// Limits follow the number of endpoints at once.
    EndpointsScale = "endpoints-scale",

    // Whether a queue stands.
    /// A queue stands when it has not drained for half a second.
    StandingBusy = "standing-busy",
    /// A queue that fills the limit stands sooner.
    StandingFull = "standing-full",
    /// A queue that grows from window to window stands sooner.
    StandingGrowing = "standing-growing",
    /// A queue that does not threaten the objective is ignored.
    Costly = "costly",
    /// A queue must threaten the objective for longer than one window.
    CostlyFor = "costly-for",
    /// A queue of fewer than two requests is ignored.
    SmallQueue = "small-queue",
    /// Refusals by the upstream make every queue costly.
    CeilingCostly = "ceiling-costly",
    /// After an outage a queue is assumed until one is seen, or none.
    Suspected = "suspected",
    /// A queue is over only after a fifth of a second of calm.
    ReliefAfter = "relief-after",
    /// Calm means less in flight than nine tenths of the knee.
    ReliefShare = "relief-share",
    /// Where most of a queue is of others, calm must last a second.
    ReliefOfMany = "relief-of-many",
    /// Where most of a queue is of others and it is still seen, calm must last four seconds.
    ReliefAnyhow = "relief-anyhow",

    // The burst limit.
    /// Bursts may queue for what the objective leaves.
    BurstAllowance = "burst-allowance",
    /// Bursts may queue for half of the objective, however long the tail without load is.
    BurstFloor = "burst-floor",
    /// The burst limit has the knee's headroom at the least.
    BurstHeadroom = "burst-headroom",
    /// Queues that drained or stood move the part of the tail that bursts may risk.
    Nerve = "nerve",
    /// Late answers take back a part of the bursts' allowance.
    Guard = "guard",
    /// For the guard, refusals of bursts make up for late answers.
    GuardRefusals = "guard-refusals",
    /// The burst limit grows when it was used up without a queue.
    Growth = "growth",
    /// A burst limit that grew decays slowly.
    GrowthKept = "growth-kept",
    /// The burst limit does not grow while more are late than refused.
    GrowthLate = "growth-late",
    /// A delay that makes a queue of less than one request does not hold up the burst limit.
    HoldsUp = "holds-up",

    // The knee.
    /// While a queue stands the knee holds instead of the burst limit.
    Knee = "knee",
    /// The headroom above Little's law grows with the root of what is in flight.
    Headroom = "headroom",
    /// The headroom grows with the number of lines that are filled.
    HeadroomLines = "headroom-lines",
    /// The knee rises when its queue is short and requests are refused.
    FollowUp = "follow-up",
    /// The knee falls when its queue is too long.
    StepDown = "step-down",
    /// A step down is an experiment, and taken back when throughput fell.
    StepBack = "step-back",
    /// After a step that was taken back there is none until the next beat.
    IsLow = "is-low",
    /// The step to the knee when a queue is found is an experiment.
    EntryCut = "entry-cut",
    /// On every beat of the common clock the knee is cut as an experiment.
    Trial = "trial",
    /// A knee that is met for moments only makes no experiment, and rises when it refuses.
    HollowKnee = "hollow-knee",
    /// A knee that is met for moments only counts as a burst when the burst limit learns.
    HollowBurst = "hollow-burst",
    /// Late answers take back a part of the knee's headroom.
    Room = "room",
    /// A baseline that would rise beyond what is harmless needs repeated evidence.
    Claims = "claims",
    /// Traffic is readmitted where shedding did not lower the latency of a few requests.
    Vain = "vain",
    /// Of a few late requests a cut that lost throughput proves nothing.
    FewLost = "few-lost",
    /// Of a few late requests a cut that lost a part of the throughput shows a queue.
    FewPartly = "few-partly",
    /// A cut that went past the end of a queue is told from one without a queue.
    LossPartly = "loss-partly",
    /// Throughput that is missing within chance proves nothing.
    LossChance = "loss-chance",
    /// A proxy among many ignores lost throughput where latency fell after the first cut.
    OthersCut = "others-cut",
    /// A proxy whose share of the queue is below half acts as one of many.
    OneOfMany = "one-of-many",

    // Ceiling and priorities.
    /// Failures that load causes put a ceiling on the limit.
    Ceiling = "ceiling",
    /// A ceiling is removed unless failures become rarer under it.
    CeilingTrial = "ceiling-trial",
    /// A ceiling needs three windows of evidence in a row.
    CeilingConfirmations = "ceiling-confirmations",
    /// Answers that say "too busy" put a ceiling at once.
    CeilingOverloads = "ceiling-overloads",
    /// Failures within the objective put no ceiling.
    CeilingTolerance = "ceiling-tolerance",
    /// Requests above the marginal level have a reserve above the limit.
    Reserve = "reserve",

    // When the breaker opens.
    /// A sum of evidence opens the breaker (CUSUM).
    TripTest = "trip-test",
    /// A worker opens its own gate before the leader decides.
    LocalTrip = "local-trip",
    /// The usual failure rate is learned.
    UsualRate = "usual-rate",
    /// What an outage taught before the trip is forgotten.
    RatesSettle = "rates-settle",
    /// A failure at a load that nobody survived weighs a quarter.
    Unsurvived = "unsurvived",
    /// Failures that load causes do not trip by the sum of evidence.
    LoadCausedTrip = "load-caused-trip",
    /// The sum of evidence trips only with hardly any success.
    OutageShare = "outage-share",
    /// A low success rate opens the breaker.
    SuccessRate = "success-rate",
    /// Failures that load causes do not trip by the success rate.
    LoadCausedRate = "load-caused-rate",
    /// A low success rate must last for a second.
    LowPatience = "low-patience",
    /// In a young window requests in flight count as successes.
    YoungWindow = "young-window",
    /// The newest part of the window must agree with the success rate.
    FreshBuckets = "fresh-buckets",
    /// Requests that get old without any answer open the breaker.
    Hang = "hang",
    /// A fast upstream hangs before twice its objective.
    HangFast = "hang-fast",
    /// Callers that gave up count as requests that hang.
    GivenUp = "given-up",
    /// Calls that stay slow at the least limit open the breaker.
    SlowCalls = "slow-calls",

    // The way back.
    /// The open interval grows with the age of the outage.
    IntervalAge = "interval-age",
    /// The open interval follows what earlier recoveries took.
    IntervalExperience = "interval-experience",
    /// The open interval is longer where traffic is rare.
    IntervalTraffic = "interval-traffic",
    /// A trip soon after a reset continues the outage before it.
    Relapse = "relapse",
    /// The upstream's Retry-After lengthens the open interval.
    RetryAfter = "retry-after",
    /// A probe that hangs gets company.
    ProbeCompany = "probe-company",
    /// A probe that hangs counts as failed.
    ProbeHang = "probe-hang",
    /// After a good probe traffic returns in steps.
    Ramp = "ramp",
    /// The ramp starts with the knee where that holds.
    RampFromKnee = "ramp-from-knee",
    /// During the ramp less evidence opens the breaker again.
    RampTrip = "ramp-trip",
    /// A worker with a good probe begins the ramp before the leader decides.
    LocalRamp = "local-ramp",
    /// Requests that hang since before the breaker opened leave the count in flight.
    WriteOff = "write-off",
    /// Requests that later ones overtook leave the count in flight.
    Overtaken = "overtaken",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_kebab_case_and_no_two_are_alike() {
        let names: BTreeSet<&str> = Mechanism::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), Mechanism::ALL.len());
        let is_kebab = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(names.iter().all(is_kebab), "{names:?}");
    }

    #[test]
    fn the_set_has_room_for_all() {
        assert!(Mechanism::ALL.len() <= 128, "one bit of a u128 for each");
    }

    #[test]
    fn what_it_does_is_one_sentence() {
        for one in Mechanism::ALL {
            let what = one.what();
            assert!(what.ends_with('.') && !what.starts_with(' '), "{what}");
        }
    }
}
