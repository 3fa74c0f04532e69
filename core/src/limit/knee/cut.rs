//! What a cut of in-flight says: was there a queue?
//!
//! Above the knee throughput does not care about in-flight, below it throughput goes with in-flight. The elasticity of
//! one to the other is near 0 when there was a queue to cut, near 1 when there was none.
//!
//! That holds for all of an upstream's load. A proxy with a share `s` of it that cuts alone sees an elasticity of
//! `1 - s`, queue or not: what it gives up, others get. But proxies that cut at the same moment are one large share. So
//! cuts that are to tell something are made on the [`beat`] of a clock that all proxies have: the wall clock, which
//! hosts keep together well within the time that a cut takes to show.

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::time::Instant;

/// Experiments are made whenever the clock passes a multiple of this.
pub(super) const BEAT: Duration = Duration::from_secs(4);
/// Throughput that falls with more than this power of in-flight was not held up by a queue.
pub(super) const NO_QUEUE: f64 = 0.6;
/// While seeking the cuts are deeper, the measurements surer, and one cut too many is expensive.
pub(super) const NO_QUEUE_SEEKING: f64 = 0.4;
/// A cut says something when in-flight followed it this far.
const TELLING_CUT: f64 = 0.9;
/// A cut as deep as this may have gone past the knee, ...
const DEEP_CUT: f64 = 0.6;
/// ... which shows in throughput: of that, a queue would have kept more than this share.
const KEPT: f64 = 0.85;
/// So many standard deviations of a Poisson count must be missing, else it may be chance.
const CHANCE: f64 = 1.75;

/// In-flight and throughput, as measured.
#[derive(Clone, Copy, Debug)]
pub(in crate::limit) struct Point {
    pub(in crate::limit) in_flight: f64,
    /// Answers a second.
    pub(in crate::limit) throughput: f64,
}

impl Point {
    pub(super) fn of(measured: &Sample) -> Self {
        Self {
            in_flight: measured.mean_in_flight(),
            throughput: measured.throughput(),
        }
    }
}

/// What a cut says about throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It went with in-flight.
    Lost,
    /// It did not at first, and then it did: there was a queue, and the cut went past its end.
    Partly,
    /// It did not.
    Kept,
    /// It may have, by chance.
    Unclear,
}

/// Whether in-flight has followed a cut, so that it says something.
pub(super) fn is_followed(before: Point, after: Point) -> bool {
    after.in_flight > 0.0 && after.in_flight <= before.in_flight * TELLING_CUT
}

/// Which beat of the clock this is.
pub(super) fn beat(clock: Instant) -> u64 {
    clock.saturating_since(Instant::ZERO).as_secs() / BEAT.as_secs()
}

/// Whether throughput, measured for `span` after a cut, went down with more than the power `no_queue` of in-flight.
pub(super) fn loss(before: Point, after: Point, span: Duration, no_queue: f64) -> Loss {
    let in_flight = after.in_flight / before.in_flight;
    let throughput = after.throughput / before.throughput;
    if !is_followed(before, after) || !throughput.is_finite() {
        return Loss::Kept;
    }
    let is_inelastic = throughput > 0.0 && libm::log(throughput) / libm::log(in_flight) <= no_queue;
    let is_past = in_flight <= DEEP_CUT && throughput < KEPT && !is_off(Mechanism::LossPartly);
    if is_inelastic && !is_past {
        return Loss::Kept;
    }
    let expected = before.throughput * span.as_secs_f64();
    let missing = expected - after.throughput * span.as_secs_f64();
    if missing > CHANCE * expected.sqrt() || is_off(Mechanism::LossChance) {
        if is_past { Loss::Partly } else { Loss::Lost }
    } else {
        Loss::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn point(in_flight: f64, throughput: f64) -> Point {
        Point {
            in_flight,
            throughput,
        }
    }

    #[test]
    fn a_queue_is_cut_without_loss_and_work_is_not() {
        let before = point(40.0, 400.0);
        let cut =
            |in_flight, throughput| loss(before, point(in_flight, throughput), SECOND, NO_QUEUE);
        assert_eq!(cut(30.0, 395.0), Loss::Kept);
        assert_eq!(cut(30.0, 300.0), Loss::Lost);
        assert_eq!(cut(39.0, 300.0), Loss::Kept, "in-flight has not followed");
    }

    #[test]
    fn a_deep_cut_past_a_queue_is_told_from_one_within_it() {
        // It was kept: a service four times as slow was held at a quarter of what it could serve.
        let cut = |throughput| loss(point(86.0, 100.0), point(7.0, throughput), SECOND, NO_QUEUE);
        assert_eq!(cut(44.0), Loss::Partly);
        assert_eq!(cut(90.0), Loss::Kept);
    }

    #[test]
    fn a_few_answers_prove_nothing() {
        let after = point(3.0, 7.5);
        assert_eq!(
            loss(point(4.0, 10.0), after, SECOND, NO_QUEUE),
            Loss::Unclear
        );
        assert_eq!(
            loss(point(4.0, 10.0), after, SECOND * 10, NO_QUEUE),
            Loss::Lost
        );
    }

    #[test]
    fn nothing_before_or_after_is_no_loss() {
        for nothing in [0.0, f64::NAN] {
            let before = point(nothing, nothing);
            assert_eq!(loss(before, point(1.0, 1.0), SECOND, NO_QUEUE), Loss::Kept);
        }
        let silent = loss(point(40.0, 400.0), point(30.0, 0.0), SECOND, NO_QUEUE);
        assert_eq!(silent, Loss::Lost);
    }
}
