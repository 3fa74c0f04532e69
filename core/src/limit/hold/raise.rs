//! The test whether refusing helps: a raise of the limit.
//!
//! If all callers that wait for their answers fit within the objective, no request need be refused. Why, and the formula for
//! how many they are, is in docs/laws/limit.md. Callers that seem to fit get the room at once. Loads that fall by chance look the
//! same, so that is checked:
//!
//! ```text
//!   Filling ---> Counting --they fit--> MakingRoom ---> Checking --none refused--> no hold
//!                   |                                      |
//!                   | too many, or as many come as before  | some are refused
//!                   +------------------> back <------------+
//! ```

use core::time::Duration;

use super::steps::TEST_PATIENCE;
use super::{Hold, HoldFinding, HoldTarget, LEAST_STEP, Phase, TESTED_FOR, patience};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;

/// Raises are made whenever the clock passes a multiple of this: a multiple of the beat.
pub(super) const PERIOD: Duration = Duration::from_secs(16);
/// The limit after a raise, as a multiple of the limit before it.
const RAISED: f64 = 1.25;
/// Arrivals must fall by this many standard deviations of Poisson counts.
const SURE: f64 = 2.0;
/// The limit for callers that fit, as a multiple of their number: they are not counted exactly.
const SPARE: f64 = 1.2;

/// Requests that came over some time.
#[derive(Clone, Copy, Debug)]
struct Demand {
    /// Those that arrived, and those of them that were refused.
    arrivals: f64,
    refused: f64,
    seconds: f64,
}

impl Demand {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of some seconds stay far below 2^53"
    )]
    fn of(sample: &Sample) -> Self {
        Self {
            arrivals: sample.count(Count::Arrivals),
            refused: sample.tally.refused_for_load() as f64,
            seconds: sample.span.as_secs_f64().max(f64::MIN_POSITIVE),
        }
    }

    /// Arrivals a second.
    fn rate(&self) -> f64 {
        self.arrivals / self.seconds
    }

    /// The variance of the rate, if the count is a Poisson count.
    fn variance(&self) -> f64 {
        self.arrivals.max(1.0) / (self.seconds * self.seconds)
    }
}

/// What the measurement under way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RaiseStage {
    /// The requests that the higher limit admits at once: they are missing among the arrivals only once.
    Filling,
    /// How many requests arrive at the higher limit.
    Counting,
    /// The callers come that were refused until now.
    MakingRoom,
    /// Whether requests are refused with room for all callers.
    Checking,
}

/// A raise under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raise {
    /// The limit before it.
    from: f64,
    /// What came at that limit.
    before: Demand,
    stage: RaiseStage,
}

/// What a raise has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RaiseFinding {
    /// Fewer came: there are so many callers, and they fit within the objective.
    Fit(f64),
    /// Fewer came, perhaps by chance.
    Undecided,
    /// As many came, or the callers are too many.
    InVain,
}

impl Raise {
    /// Judges what came after a raise to `to`; `most` is what the objective affords.
    fn judge(&self, after: &Demand, to: f64, most: f64) -> RaiseFinding {
        let refused = self.before.refused / self.before.seconds;
        let fell = self.before.rate() - after.rate();
        let callers = self.from + refused * (to - self.from) / fell.max(f64::MIN_POSITIVE);
        if callers > most {
            RaiseFinding::InVain
        } else if fell > SURE * (self.before.variance() + after.variance()).sqrt() {
            RaiseFinding::Fit(callers)
        } else {
            RaiseFinding::Undecided
        }
    }
}

impl Hold {
    /// Raises the limit if that can be judged. Returns whether it did.
    pub(super) fn begin_raise(&mut self, target: &HoldTarget) -> bool {
        let step = (self.limit * RAISED).max(self.limit + LEAST_STEP);
        let to = step.min(target.most);
        let is_too_small = to < self.limit + LEAST_STEP;
        // A shorter wait than the model's has a reason of its own, and so has a limit that only tests may move.
        let is_below_one = self.is_below_one() && !is_off(Mechanism::RaiseFromOne);
        if is_too_small
            || is_below_one
            || target.is_contended
            || target.in_doubt
            || is_off(Mechanism::Raise)
        {
            return false;
        }
        let Some(before) = self.settled.as_ref().map(Demand::of) else {
            return false;
        };
        self.phase = Phase::Raise(Raise {
            from: self.limit,
            before,
            stage: RaiseStage::Filling,
        });
        self.change(to);
        true
    }

    pub(super) fn end_raise(
        &mut self,
        measured: Sample,
        raise: Raise,
        target: &HoldTarget,
    ) -> HoldFinding {
        let go_on = |stage| Phase::Raise(Raise { stage, ..raise });
        match raise.stage {
            RaiseStage::Filling => self.phase = go_on(RaiseStage::Counting),
            RaiseStage::Counting => {
                let finding = raise.judge(&Demand::of(&measured), self.limit, target.most);
                let may_wait = measured.span < patience(TEST_PATIENCE, TESTED_FOR, &measured);
                match finding {
                    RaiseFinding::Fit(callers) => {
                        let room = (callers * SPARE).min(target.most);
                        self.change(room.max(self.limit));
                        self.phase = go_on(RaiseStage::MakingRoom);
                    }
                    RaiseFinding::Undecided if may_wait => self.measured = Some(measured),
                    RaiseFinding::Undecided | RaiseFinding::InVain => self.go_back(raise),
                }
            }
            RaiseStage::MakingRoom => self.phase = go_on(RaiseStage::Checking),
            RaiseStage::Checking => {
                if measured.tally.refused_for_load() == 0 {
                    return HoldFinding::Over;
                }
                self.go_back(raise);
            }
        }
        HoldFinding::Nothing
    }

    fn go_back(&mut self, raise: Raise) {
        self.phase = Phase::Settled { is_blocked: false };
        self.change(raise.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_counted_by_how_many_fewer_come() {
        use RaiseFinding::{Fit, InVain, Undecided};
        // From 40 to 50, where 80 are affordable.
        for (arrivals, refused, after, seconds, expected) in [
            (1_400.0, 1_000.0, 400.0, 1.0, Fit(50.0)),
            (1_400.0, 1_000.0, 900.0, 1.0, Fit(60.0)),
            (1_400.0, 1_000.0, 1_150.0, 1.0, Fit(80.0)),
            (1_400.0, 1_000.0, 1_160.0, 1.0, InVain),
            (1_400.0, 1_000.0, 1_400.0, 1.0, InVain),
            (1_400.0, 1_000.0, 1_700.0, 1.0, InVain),
            (420.0, 20.0, 410.0, 1.0, Undecided),
            (420.0, 20.0, 410.0, 100.0, Fit(60.0)),
            (401.0, 1.0, 400.0, 1.0, Undecided),
        ] {
            let demand = |rate: f64| Demand {
                arrivals: rate * seconds,
                refused: refused * seconds,
                seconds,
            };
            let raise = Raise {
                from: 40.0,
                before: demand(arrivals),
                stage: RaiseStage::Counting,
            };
            let found = raise.judge(&demand(after), 50.0, 80.0);
            assert_eq!(found, expected, "{arrivals} to {after} in {seconds} s");
        }
    }
}
