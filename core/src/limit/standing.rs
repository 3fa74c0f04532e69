//! Whether a queue stands.
//!
//! A queue that drains costs nobody anything; one that stands delays everybody and carries nothing more. CoDel tells
//! them apart by the minimum over an interval: a queue stands when the low latency quantile has been above the
//! baseline without a break for [`STANDING_AFTER`]. One that fills the limit and turns requests away, window after
//! window, will not drain either, nor will one that grows from window to window: they need not be waited for so long.
//!
//! And one that costs nobody the objective is let be, however long it stands: where callers come in lockstep, or as many
//! as there are connections, there is always a queue, and it goes nowhere. So it must also be *costly*: the fast
//! requests wait a good part of what the objective affords.
//!
//! ```text
//!   costly, and busy for STANDING_AFTER, full for FULL_FOR, or growing for GROWING_FOR
//!   passing -----------------------------------------------> standing
//!      ^                                                         |
//!      +---------------------------------------------------------+
//!               below the knee, nothing refused, for RELIEF_AFTER
//! ```

use core::time::Duration;

use super::figures::Figures;
use super::headroom::MIN_HEADROOM;
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::time::Instant;

/// A queue that has not drained for so long stands.
pub const STANDING_AFTER: Duration = Duration::from_millis(500);
/// Or for so many mean no-load latencies, if that is longer.
const STANDING_OF_MEAN: f64 = 5.0;
/// A queue that fills the limit to this share and turns requests away, window after window for so long, does not drain:
/// it stands already. A burst fills it once.
const FULL: f64 = 0.9;
const FULL_FOR: Duration = Duration::from_millis(150);
const FULL_OF_MEAN: f64 = 3.0;
/// One that grows from window to window for so long is fed by more than the upstream serves: no burst does that.
const GROWING_FOR: Duration = Duration::from_millis(250);
/// It is costly when the fast requests have waited this share of what the objective affords ...
const COSTLY: f64 = 0.5;
/// ... for so long: more than one window of a busy upstream, as packs of requests make every other one look so.
const COSTLY_FOR: Duration = Duration::from_millis(150);
/// It is over when in-flight stays below this share of the knee for so long. A moment's lull is no relief: the burst
/// limit would let the queue in again.
const RELIEF: f64 = 0.9;
const RELIEF_AFTER: Duration = Duration::from_millis(200);
/// Where most of a queue is of others it must be gone as well, for so long, or a proxy with few requests would leave those
/// who hold it by chance, and never come back: what they hold costs it nothing. Who has refused nothing for the longer
/// time leaves all the same: its baseline may be of a service that was faster.
const RELIEF_OF_MANY: Duration = Duration::from_secs(1);
const RELIEF_ANYHOW: Duration = Duration::from_secs(4);
/// When no queue was seen for so long, what is in flight beyond Little's law is no remnant of one: the upstream is slow
/// with some requests.
const CLEAR_AFTER: Duration = Duration::from_secs(2);

/// What one window changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    Same,
    /// A queue has drained by itself, and requests had been refused for it.
    Drained,
    /// A queue stands from now on.
    Stands,
}

/// What a window is held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// The limit in force.
    pub(super) limit: f64,
    /// The mean no-load latency, seconds.
    pub(super) mean: f64,
    /// What a request may wait within the objective, seconds.
    pub(super) affordable: f64,
    /// Whether most of a queue is of other proxies.
    pub(super) is_one_of_many: bool,
}

/// Since when something has been so without a break.
#[derive(Clone, Copy, Debug, Default)]
struct Spell {
    since: Option<Instant>,
}

impl Spell {
    /// How long it has been so, if it is so now.
    fn update(&mut self, is_so: bool, now: Instant) -> Duration {
        if !is_so {
            self.since = None;
        }
        let since = if is_so {
            *self.since.get_or_insert(now)
        } else {
            now
        };
        now.saturating_since(since)
    }
}

/// What is known of the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// There has been a queue, it has filled the limit, it has grown, it has been costly.
    busy: Spell,
    full: Spell,
    growing: Spell,
    costly: Spell,
    /// When there last was one, and how many were in flight at the end of the last window.
    busy_at: Option<Instant>,
    grown_to: f64,
    /// Whether it cost anybody.
    refused: bool,
    stands: bool,
    /// It stands because nobody knows better, and is yet to be seen.
    suspected: bool,
    /// It seems to be gone.
    calm: Spell,
}

impl Standing {
    /// As another leader left it.
    pub(super) fn resume(stands: bool) -> Self {
        Self {
            stands,
            ..Self::default()
        }
    }

    pub(super) const fn stands(&self) -> bool {
        self.stands
    }

    /// A queue is assumed to stand.
    pub(super) fn assume(&mut self) {
        self.stands = true;
        self.suspected = false;
        self.calm = Spell::default();
        self.refused = false;
    }

    /// There was none.
    pub(super) fn end(&mut self) {
        self.stands = false;
        self.calm = Spell::default();
    }

    /// A queue may stand: until one is seen, or none.
    pub(super) fn suspect(&mut self) {
        self.assume();
        self.suspected = true;
    }

    /// Nothing was in flight at the end of a window without an answer.
    pub(super) fn run_empty(&mut self) {
        self.busy = Spell::default();
        self.full = Spell::default();
    }

    /// Whether latencies of this window may have a queue in them although most requests were fast: it has only just
    /// begun, or has only just drained. `carried` is what the upstream has in flight without one.
    pub(super) fn has_remnant(&self, figures: &Figures, carried: f64, now: Instant) -> bool {
        figures.in_flight.max(figures.in_flight_at_end) > carried
            && self
                .busy_at
                .is_some_and(|at| now.saturating_since(at) < CLEAR_AFTER)
            && !is_off(Mechanism::Remnant)
    }

    /// One window.
    pub(super) fn judge(&mut self, figures: &Figures, usual: Usual, now: Instant) -> Change {
        let was_busy = self.busy.since.is_some();
        let is_full = figures.refused && figures.in_flight_at_end >= usual.limit * FULL;
        let grows = figures.in_flight_at_end > self.grown_to;
        let is_costly = figures.delay >= usual.affordable * COSTLY;
        self.grown_to = figures.in_flight_at_end;
        let busy_for = self.busy.update(figures.busy, now);
        let full_for = self.full.update(is_full, now);
        let growing_for = self.growing.update(figures.busy && grows, now);
        let costly_for = self.costly.update(figures.busy && is_costly, now);
        if !figures.busy {
            // A queue that is held at the knee has not drained by itself.
            let drained = was_busy && core::mem::take(&mut self.refused) && !self.stands;
            self.refused |= figures.refused;
            return if drained {
                Change::Drained
            } else {
                Change::Same
            };
        }
        self.refused |= figures.refused;
        self.busy_at = Some(now);
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let of_mean = seconds(usual.mean * STANDING_OF_MEAN);
        // Who has few of an upstream's requests has long windows: the one that shows it first is a part of the time. Later
        // than others it would find the queue cut by them.
        let shown_for = if usual.is_one_of_many {
            busy_for + seconds(figures.span)
        } else {
            busy_for
        };
        let is_full = full_for >= FULL_FOR.max(seconds(usual.mean * FULL_OF_MEAN));
        let lasts = shown_for >= STANDING_AFTER.max(of_mean) && !is_off(Mechanism::StandingBusy)
            || is_full && !is_off(Mechanism::StandingFull)
            || growing_for >= GROWING_FOR.max(of_mean) && !is_off(Mechanism::StandingGrowing);
        // The window that shows it first is a part of the time.
        let costs = || {
            is_costly
                && (costly_for + seconds(figures.span) >= COSTLY_FOR
                    || is_off(Mechanism::CostlyFor))
                || is_off(Mechanism::Costly)
        };
        let is_news = !self.stands || self.suspected;
        let is_small = || figures.queue() < MIN_HEADROOM && !is_off(Mechanism::SmallQueue);
        if !lasts || !is_news || is_small() || !costs() {
            return Change::Same;
        }
        self.assume();
        Change::Stands
    }

    /// One round while a queue stands. Judged by rounds, not by windows: where traffic comes in packs, a whole window is
    /// never calm.
    pub(super) fn relieve(
        &mut self,
        sample: &Sample,
        knee: f64,
        holds_with_others: bool,
        now: Instant,
    ) {
        let is_calm = sample.tally.refused_for_load() == 0
            && f64::from(sample.in_flight) < knee
            && (sample.mean_in_flight() < knee * RELIEF || is_off(Mechanism::ReliefShare));
        let calm_for = self.calm.update(is_calm, now);
        let needed = match self.busy.since {
            _ if !holds_with_others || is_off(Mechanism::ReliefOfMany) => RELIEF_AFTER,
            Some(_) if !is_off(Mechanism::ReliefAnyhow) => RELIEF_ANYHOW,
            None | Some(_) => RELIEF_OF_MANY,
        };
        if is_calm && (calm_for >= needed || is_off(Mechanism::ReliefAfter)) {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::baseline::Baseline;

    const USUAL: Usual = Usual {
        limit: 90.0,
        mean: 0.04,
        affordable: 0.15,
        is_one_of_many: false,
    };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A window of a tenth of a second whose requests waited for `delay` seconds, and that ended with `in_flight`.
    fn window(delay: f64, in_flight: u32) -> Figures {
        let mut sample = Sample::empty(Duration::from_millis(100));
        sample.in_flight = in_flight;
        for _ in 0..20 {
            sample.tally.latency.record(Duration::from_millis(40));
        }
        Figures::of(
            &sample,
            0.02 + delay,
            &Baseline::believed(0.02, USUAL.mean, 0.1),
            0.3,
        )
    }

    /// When a queue is found to stand, in milliseconds, if so many are in flight at the end of each window.
    fn stands_after(standing: &mut Standing, in_flight: &[u32]) -> Option<usize> {
        (0..in_flight.len()).map(|i| i * 100).find(|millis| {
            let now = at(u64::try_from(*millis).unwrap());
            let figures = window(0.1, *in_flight.get(*millis / 100).unwrap());
            standing.judge(&figures, USUAL, now) == Change::Stands
        })
    }

    #[test]
    fn a_queue_that_grows_without_a_break_stands_sooner_than_one_that_does_not() {
        let growing = [20, 30, 40, 50, 60, 70, 80];
        assert_eq!(stands_after(&mut Standing::default(), &growing), Some(300));
        let draining = [60, 50, 40, 30, 20, 19, 18];
        assert_eq!(stands_after(&mut Standing::default(), &draining), Some(500));
    }

    /// When a queue is found to stand, in milliseconds, if requests wait for so many milliseconds in one window after
    /// another.
    fn stands_with(delays: impl IntoIterator<Item = u32>) -> Option<usize> {
        let mut standing = Standing::default();
        delays.into_iter().position(|delay| {
            let window = window(f64::from(delay) / 1_000.0, 60);
            let now = standing.busy_at.unwrap_or_default() + Duration::from_millis(100);
            standing.judge(&window, USUAL, now) == Change::Stands
        })
    }

    #[test]
    fn a_queue_that_leaves_the_objective_room_is_let_be() {
        assert_eq!(stands_with([30; 100]), None);
        assert_eq!(
            stands_with([80; 100]),
            Some(5),
            "one that does not stands after half a second"
        );
    }

    #[test]
    fn packs_of_requests_do_not_make_a_queue_stand() {
        // They wait long in the window in which they come, and those that remain in the next one do not.
        assert_eq!(stands_with([80, 60].into_iter().cycle().take(100)), None);
    }

    #[test]
    fn a_suspected_queue_can_still_be_found() {
        let steady = [30; 7];
        let mut standing = Standing::default();
        standing.suspect();
        assert!(standing.stands());
        assert_eq!(stands_after(&mut standing, &steady), Some(500));
        assert_eq!(stands_after(&mut standing, &steady), None, "it is known");
    }

    /// After how many tenths of a second without a refusal a queue is over that others hold as well, if this proxy sees it
    /// or does not.
    fn over_after(holds_with_others: bool, is_seen: bool) -> u32 {
        let mut standing = Standing::default();
        standing.assume();
        standing.busy.update(is_seen, at(0));
        let round = Sample::empty(Duration::from_millis(100));
        let tenths = (1..100).find(|tenth| {
            standing.relieve(&round, 6.0, holds_with_others, at(tenth * 100));
            !standing.stands()
        });
        u32::try_from(tenths.unwrap()).unwrap()
    }

    #[test]
    fn who_holds_a_queue_with_others_leaves_when_it_is_gone() {
        let alone = over_after(false, true);
        assert_eq!(alone, over_after(false, false));
        let gone = over_after(true, false);
        let seen = over_after(true, true);
        assert!(alone < gone && gone < seen, "{alone} {gone} {seen}");
    }
}
