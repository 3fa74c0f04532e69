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
    // Few requests.
    /// A proxy's share of the limit in Hold may be below one request in flight.
    BelowOne = "below-one",
    /// Below one, a step down of the limit is no test.
    UntestedSteps = "untested-steps",
    /// Below one, the throughput is the capacity in the formula of Hold.
    OwnShare = "own-share",
    /// Below one, a long wait is tested on the beat, with a deep step.
    TrialBelowOne = "trial-below-one",
    /// Below one, the limit is not raised to see whether fewer requests come.
    RaiseFromOne = "raise-from-one",
    /// Late requests show a queue where the limit cannot.
    LateRequests = "late-requests",
    /// Late requests are tested only if those that follow are late, too.
    LateConfirmed = "late-confirmed",
    /// The limit falls where callers leave late and no request is answered.
    CallersLeave = "callers-leave",
    /// A delayed window that may harm the objective does not teach the floor, however few of its requests wait.
    HarmfulWindows = "harmful-windows",
    /// A few answers that are faster by more than chance replace a floor in doubt.
    FewerFaster = "fewer-faster",
    /// The low quantile of a few answers is compared with a higher quantile of the floor.
    FewAnswers = "few-answers",
    /// A window teaches the capacity as much as it has answers.
    AnswersWeigh = "answers-weigh",
    /// Probes are at most a quarter of the usual traffic.
    ProbeShare = "probe-share",
    /// Requests that come together show a higher capacity than the throughput.
    Together = "together",
    // The latency without a queue.
    /// First latencies that grow with load tell the latency without a queue.
    LoadTrend = "load-trend",
    /// A window that is faster than the floor teaches it at once, also while a queue stands.
    FloorFaster = "floor-faster",
    /// A floor that may harm the objective is in doubt until a test.
    Proof = "proof",
    /// A floor is not in doubt after a long time without a refusal.
    QuietTrust = "quiet-trust",
    /// A floor that stays in doubt makes the limit hold.
    DoubtHold = "doubt-hold",
    /// A floor in doubt is believed only where it is harmless.
    DoubtHarmless = "doubt-harmless",
    /// A window with a lower mean than a floor in doubt replaces it.
    Faster = "faster",
    /// A queue that sheds no request for two seconds counts as a slower service.
    SlowerInCruise = "slower-in-cruise",
    /// A slower service is recognized without a test only if its latency does no harm.
    SlowerHarmless = "slower-harmless",
    /// The floor forgets in ten seconds where answers are rare.
    MemorySpan = "memory-span",
    /// A queue of fewer than one request is ignored.
    SmallQueue = "small-queue",
    /// Requests without an answer count as in flight in Little's law.
    Unanswered = "unanswered",
    /// Requests whose time in flight no latency accounts for count in the limit.
    Unmeasured = "unmeasured",
    /// A delay of half of what the objective affords is a queue.
    BusyCostly = "busy-costly",
    /// A mean of twice the floor's is a queue that fast answers hide.
    BusyMean = "busy-mean",

    // Capacity.
    /// The capacity does not fall while the limit has room for all requests and they do not become slower.
    SteadyCapacity = "steady-capacity",
    /// A throughput that chance does not explain moves the capacity faster.
    SurpriseWeight = "surprise-weight",
    /// A lower capacity is believed only from windows that were full throughout.
    FullWindows = "full-windows",
    /// Holding begins with the capacity from before the queue, where that was greater.
    BeforeTheQueue = "before-the-queue",
    /// Limit and capacity follow the number of endpoints at once.
    EndpointsScale = "endpoints-scale",

    // While no queue stands.
    /// Until a queue has stood the limit is a fifth of the initial one at the least.
    SurgeLeast = "surge-least",
    /// Arrivals that come together by chance have room, however little the objective affords.
    ChanceRoom = "chance-room",
    /// Bursts may wait for what the objective leaves.
    BurstWait = "burst-wait",
    /// Late and refused requests move the wait that is allowed to bursts.
    BurstFeedback = "burst-feedback",
    /// Refused requests count against late ones only as often as a shorter wait would refuse more.
    ShedOnce = "shed-once",
    /// Late answers to requests from before a step do not shorten the wait in use after it.
    LateBefore = "late-before",
    /// The limit grows when it refuses requests without a queue.
    Growth = "growth",
    /// Where the capacity is known, the limit grows only once answers account for the requests in flight.
    GrowthAnswered = "growth-answered",
    /// A pack that makes no queue doubles the limit until there is a queue.
    Packs = "packs",
    /// A window that drains a pack does not end the growth.
    Draining = "draining",
    /// The objective is given up where most answers exceed it without a queue.
    Unreachable = "unreachable",
    /// The tail is that of the answers that can be in time.
    TailWithin = "tail-within",
    /// Uploads under way are added to the limit, as they are counted.
    Uploading = "uploading",

    // Whether a queue stands.
    /// A queue that costs less than half of the affordable wait is ignored.
    Costly = "costly",
    /// A queue stands only if the limit is in use on average, not just for moments.
    StandingFull = "standing-full",
    /// A queue stands only when requests were refused.
    StandingRefused = "standing-refused",
    /// The first queue stands only if its few answers are slower than chance explains.
    StandingOdds = "standing-odds",
    /// A queue that only the mean latency shows must be proven by a test.
    HiddenProof = "hidden-proof",
    /// Where only the mean latency shows a queue, neither the capacity nor a limit that has grown falls.
    HiddenLimit = "hidden-limit",
    /// When the latency becomes known, the limit has room for what is in flight.
    FirstInFlight = "first-in-flight",
    /// Holding ends if latencies stay long and the fast requests show no queue.
    LongLatencies = "long-latencies",
    /// Holding ends only after a fifth of a second of calm, or the time of two answers.
    ReliefAfter = "relief-after",
    /// Calm means less in flight than nine tenths of the limit.
    ReliefShare = "relief-share",
    /// When holding ends, the capacity is that from before the queue again, where that was greater.
    ReliefCapacity = "relief-capacity",
    /// The capacity before a queue is that of a window without a refusal in which requests were fast.
    CalmCapacity = "calm-capacity",
    /// An outage makes the limit hold what the upstream carried.
    Restart = "restart",
    /// After failures it holds at one request or more, unless a queue has stood.
    RestartFromOne = "restart-from-one",

    // While one stands.
    /// The limit holds what the upstream carries, instead of the limit for bursts.
    Hold = "hold",
    /// The headroom grows with the root of what is in flight.
    Headroom = "headroom",
    /// The headroom grows with the number of lines that are filled.
    HeadroomLines = "headroom-lines",
    /// The wait is a third of what the objective affords at most.
    HeldShare = "held-share",
    /// A standing queue may take a small part of the affordable wait, however short the headroom is.
    LeastHeldShare = "least-held-share",
    /// Late requests move the wait in use while a queue stands.
    HoldFeedback = "hold-feedback",
    /// The limit rises when its queue is short and requests are refused.
    StepUp = "step-up",
    /// The least step up is a tenth, whatever the model says.
    CreepUp = "creep-up",
    /// The limit falls when its queue is too long.
    StepDown = "step-down",
    /// More in flight than the formula gives is tested by a step down, whatever the low quantile says.
    Stretched = "stretched",
    /// A step down is a test, and taken back when it lost throughput.
    CutTest = "cut-test",
    /// After a step that was taken back there is none until the next beat.
    StepBlock = "step-block",
    /// What completes right after a step is not measured.
    Settling = "settling",
    /// A limit that is met for moments only makes no test, and rises when it refuses.
    AppLimited = "app-limited",
    /// A trial at a limit of one is a step up.
    TrialUp = "trial-up",
    /// A test lasts for one latency at least.
    WholeCycles = "whole-cycles",
    /// On a beat of the common clock the limit is cut as a test, where its step was blocked or the floor is in doubt.
    Trial = "trial",
    /// The step down at which holding begins is a test.
    EntryTest = "entry-test",
    /// Hold is not over while requests from before it are in flight, and then a slower service that its first test has shown counts.
    EntryOver = "entry-over",
    /// The limit rises on every fourth beat, to count the callers of a closed loop.
    Raise = "raise",
    /// On some beats the wait is halved to see whether fewer requests in flight achieve more.
    Dip = "dip",
    /// A slower service that may cost the objective needs three votes.
    Votes = "votes",
    /// A slower service is believed at once where it is harmless.
    Harmless = "harmless",
    /// What may be chance is not a finding of a test.
    Chance = "chance",
    /// The wait in use shrinks where less in flight carries more.
    Contended = "contended",
    /// The wait of bursts shrinks with that of Hold.
    ContendedBurst = "contended-burst",
    /// A wait that shrank so grows back with each beat.
    Forgiven = "forgiven",

    // Ceiling and priorities.
    /// Failures that load causes put a ceiling on the limit.
    Ceiling = "ceiling",
    /// A ceiling is removed unless failures become rarer under it.
    CeilingTrial = "ceiling-trial",
    /// A ceiling needs three windows of evidence in a row.
    CeilingConfirmations = "ceiling-confirmations",
    /// Failures within the objective put no ceiling.
    CeilingTolerance = "ceiling-tolerance",
    /// Under a ceiling every queue is costly.
    CeilingCostly = "ceiling-costly",
    /// Requests above the marginal level have a reserve above the limit.
    Reserve = "reserve",

    // When the breaker opens.
    /// A sum of evidence opens the breaker (CUSUM).
    TripTest = "trip-test",
    /// The sum of evidence opens it only when successes stop.
    Silence = "silence",
    /// After a false alarm successes must be missing for longer.
    DoubtedSilence = "doubted-silence",
    /// Successes must be missing for some mean gaps.
    MeanGap = "mean-gap",
    /// It opens it only when failures come more often than beside successes before.
    FailurePeak = "failure-peak",
    /// A worker opens its own gate before the leader decides.
    LocalTrip = "local-trip",
    /// The usual failure rate is learned.
    UsualRate = "usual-rate",
    /// What an outage taught before the trip is forgotten.
    RatesSettle = "rates-settle",
    /// A low success rate opens the breaker.
    SuccessRate = "success-rate",
    /// A low success rate opens it only when successes are fewer than usual.
    LacksSuccesses = "lacks-successes",
    /// They must be fewer by more than chance.
    MissingByChance = "missing-by-chance",
    /// Few successes that opened the breaker once are the usual ones afterwards.
    AcceptSuccesses = "accept-successes",
    /// While failures prevail the usual rate of successes follows more slowly.
    FailingMemory = "failing-memory",
    /// Failures that load causes do not trip by the success rate.
    LoadCausedRate = "load-caused-rate",
    /// A low success rate must last for a second.
    LowPatience = "low-patience",
    /// The newest part of the window must agree with the success rate.
    FreshBuckets = "fresh-buckets",
    /// Requests that get old without any answer open the breaker.
    Hang = "hang",
    /// Fewer requests do so too if they fill the limit, after a longer wait.
    HangOfFew = "hang-of-few",
    /// So does a full limit without an answer, sooner where answers are fast; what hangs then leaves the count in flight.
    FullSilence = "full-silence",
    /// They do so only when answers are missing for longer than usual.
    HangSilence = "hang-silence",
    /// Callers that gave up count as requests that hang.
    GivenUp = "given-up",

    // The way back.
    /// The open interval grows with the age of the outage.
    IntervalAge = "interval-age",
    /// The open interval is longer where traffic is rare.
    IntervalTraffic = "interval-traffic",
    /// The upstream's Retry-After lengthens the open interval.
    RetryAfter = "retry-after",
    /// Several probes decide where requests usually fail.
    ProbeCount = "probe-count",
    /// A probe that hangs gets company.
    ProbeCompany = "probe-company",
    /// A probe that hangs counts as failed.
    ProbeHang = "probe-hang",
    /// Answers to requests from before a trip show that an upstream is slow and does not hang.
    StaleAnswers = "stale-answers",
    /// After a good probe traffic returns in steps.
    Ramp = "ramp",
    /// The ramp starts with the limit of hold where that is in force.
    RampFromHold = "ramp-from-hold",
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
