//! A run in figures: what came out, how evenly, and whether it swings.
//!
//! Each phase of a story is judged by its settled part.

use std::time::Duration;

use serde::Serialize;
use tidegate_core::Histogram;

use super::plan::{Fleet, FleetPhase};
use super::series::{FleetPoint, series};
use super::swing::{Swing, mean};
use crate::number::{self, float};
use crate::scenario::Callers;
use crate::world::Tallied;
use crate::world::tally::{BIN_S, BINS_PER_SECOND, Bin, BinCounts, RunTally, Share};

/// Goodput has caught up when for one second it is at least this share of what is possible.
const FOLLOWS: f64 = 0.95;

/// A run in figures.
#[derive(Debug, Clone, Serialize)]
pub struct FleetFigures {
    /// The story's name.
    pub story: String,
    /// `sidecars`, `waypoint`, `waypoints-4`.
    pub topology: String,
    /// How many proxies that is.
    pub proxies: u32,
    /// Requests that callers sent.
    pub offered: u64,
    /// Good answers over those that the service could have given to these requests.
    pub score: f64,
    /// How often a breaker opened, in all proxies.
    pub trips: u64,
    /// Requests that engines wrongly counted as in flight; anything but 0 is a leak.
    pub leaked: u64,
    /// Each phase, in its settled part.
    pub phases: Vec<FleetPhaseFigures>,
    /// Second by second.
    pub series: Vec<FleetPoint>,
    /// Requests at the endpoints, ten times a second.
    pub at_endpoints: Vec<u64>,
}

/// A phase in figures; rates are per second.
#[derive(Debug, Clone, Serialize)]
pub struct FleetPhaseFigures {
    /// Its name and bounds.
    #[serde(flatten)]
    pub phase: FleetPhase,
    /// What callers sent.
    pub offered: f64,
    /// What the service can answer.
    pub capacity: f64,
    /// Good answers.
    pub goodput: f64,
    /// Good answers over those that the service could have given.
    pub score: f64,
    /// Quantiles of the latency of answers 200, as callers saw them.
    pub p50_ms: Option<f64>,
    /// See [`Self::p50_ms`].
    pub p99_ms: Option<f64>,
    /// Share of requests that were shed by a limit, and by a breaker.
    pub shed_by_limit: f64,
    /// See [`Self::shed_by_limit`].
    pub shed_by_breaker: f64,
    /// Share of admitted requests whose answer came too late or whose caller gave up.
    pub wasted: f64,
    /// Fairness of the callers' admitted rates over the phase, by the index of Jain; none when no caller was served.
    pub fairness: Option<f64>,
    /// Fairness of the share of its requests that each caller had admitted.
    pub served_fairness: Option<f64>,
    /// The same among light and among heavy callers, the lesser of the two; none where all are equal.
    pub alike_fairness: Option<f64>,
    /// That share, of all callers that sent any: its lowest 1 %, middle and highest 1 %; 0 where none did.
    pub served_p01: f64,
    /// See [`Self::served_p01`].
    pub served_p50: f64,
    /// See [`Self::served_p01`].
    pub served_p99: f64,
    /// That share, of light and of heavy callers together; none where all are equal.
    pub served_light: Option<f64>,
    /// See [`Self::served_light`].
    pub served_heavy: Option<f64>,
    /// Requests at the endpoints, in slots and lines, on average, and their slots.
    pub at_endpoints: f64,
    /// See [`Self::at_endpoints`].
    pub slots: f64,
    /// How requests at the endpoints swing.
    pub load_swing: Swing,
    /// How goodput swings.
    pub goodput_swing: Swing,
    /// Seconds from the beginning of the phase until goodput followed; none when it never did.
    pub settle_s: Option<f64>,
}

impl FleetFigures {
    pub(super) fn of(fleet: &Fleet, run: &Tallied) -> Self {
        let tally = &run.tally;
        let possible: Vec<f64> = tally
            .bins
            .iter()
            .enumerate()
            .map(|(index, bin)| possible(fleet, index, bin))
            .collect();
        let whole = sum(&tally.bins);
        let phases = fleet.phases.iter();
        Self {
            story: fleet.scenario.name.trim_start_matches("fleet-").to_owned(),
            topology: fleet.topology.to_string(),
            proxies: fleet.scenario.proxies,
            offered: whole.offered,
            score: score(whole.good, &possible),
            trips: tally.trips,
            leaked: run.leaked,
            phases: phases
                .map(|phase| FleetPhaseFigures::of(fleet, *phase, tally, &possible))
                .collect(),
            series: series(tally, &possible),
            at_endpoints: tally.bins.iter().map(at_endpoints).collect(),
        }
    }

    /// The phase of a name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&FleetPhaseFigures> {
        self.phases
            .iter()
            .find(|figures| figures.phase.name == name)
    }
}

/// What the service could have answered of the requests of a bin: all of them, or its capacity.
fn possible(fleet: &Fleet, index: usize, bin: &Bin) -> f64 {
    let at = number::seconds(number::float_len(index) * BIN_S);
    (fleet.capacity_at(at) * BIN_S).min(float(bin.counts.offered))
}

fn score(good: u64, possible: &[f64]) -> f64 {
    let possible: f64 = possible.iter().sum();
    if possible > 0.0 {
        float(good) / possible
    } else {
        1.0
    }
}

fn at_endpoints(bin: &Bin) -> u64 {
    bin.levels.in_service + bin.levels.waiting
}

/// The part of a list of bins from one second to another.
fn between<T>(bins: &[T], from_s: u32, to_s: u32) -> &[T] {
    let index = |second: u32| {
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        second.saturating_mul(BINS_PER_SECOND).min(bins.len())
    };
    bins.get(index(from_s)..index(to_s)).unwrap_or_default()
}

impl FleetPhaseFigures {
    fn of(fleet: &Fleet, phase: FleetPhase, tally: &RunTally, all_possible: &[f64]) -> Self {
        let bins = between(&tally.bins, phase.settled_s, phase.to_s);
        let possible = between(all_possible, phase.settled_s, phase.to_s);
        let shares = shares(tally, &phase);
        let (counts, mut latency) = (sum(bins), Histogram::default());
        for bin in bins {
            latency.merge(&bin.latency);
        }
        let seconds = f64::from(phase.to_s - phase.settled_s).max(1.0);
        let loads: Vec<f64> = bins.iter().map(|bin| float(at_endpoints(bin))).collect();
        let good: Vec<f64> = bins.iter().map(|bin| float(bin.counts.good)).collect();
        let asked = shares.iter().filter(|share| share.offered > 0);
        let classes = classes(fleet.scenario.callers, &shares);
        let [served_p01, served_p50, served_p99] = served_at(&shares, [0.01, 0.5, 0.99]);
        let ms = |quantile| latency.quantile(quantile).map(|seconds| seconds * 1e3);
        let begin = Duration::from_secs(u64::from(phase.settled_s));
        Self {
            phase,
            offered: float(counts.offered) / seconds,
            capacity: fleet.capacity_at(begin),
            goodput: float(counts.good) / seconds,
            score: score(counts.good, possible),
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            shed_by_limit: number::ratio(counts.shed_by_limit, counts.offered),
            shed_by_breaker: number::ratio(counts.shed_by_breaker, counts.offered),
            wasted: number::ratio(counts.late + counts.gave_up, counts.admitted),
            fairness: number::fairness(asked.map(|share| f64::from(share.admitted))),
            served_fairness: served_fairness(&shares),
            alike_fairness: classes.as_ref().and_then(|[light, heavy]| {
                Some(served_fairness(light)?.min(served_fairness(heavy)?))
            }),
            served_p01,
            served_p50,
            served_p99,
            served_light: classes.as_ref().map(|[light, _]| served(light)),
            served_heavy: classes.as_ref().map(|[_, heavy]| served(heavy)),
            at_endpoints: mean(&loads),
            slots: fleet.slots_at(begin),
            load_swing: Swing::of(&loads),
            goodput_swing: Swing::of(&good),
            settle_s: settle(
                between(&tally.bins, phase.from_s, phase.to_s),
                between(all_possible, phase.from_s, phase.to_s),
            ),
        }
    }
}

/// What each caller sent and got in the settled part of a phase.
fn shares(tally: &RunTally, phase: &FleetPhase) -> Vec<Share> {
    let second = |second: u32| usize::try_from(second).unwrap_or(usize::MAX);
    let (from, to) = (second(phase.settled_s), second(phase.to_s));
    let mut seconds = tally.shares.iter().take(to).skip(from);
    let mut sums = seconds.next().cloned().unwrap_or_default();
    for second in seconds {
        for (sum, share) in sums.iter_mut().zip(second) {
            sum.offered += share.offered;
            sum.admitted += share.admitted;
        }
    }
    sums
}

fn sum(bins: &[Bin]) -> BinCounts {
    let mut sum = BinCounts::default();
    bins.iter().for_each(|bin| sum.add(&bin.counts));
    sum
}

/// Light and heavy callers; none where all are equal.
fn classes(callers: Option<Callers>, shares: &[Share]) -> Option<[Vec<Share>; 2]> {
    let callers = callers.filter(|callers| callers.heavy.is_some())?;
    let class = |is_heavy: bool| {
        let of_class = (0..).zip(shares);
        let of_class = of_class.filter(|(caller, _)| callers.is_heavy(*caller) == is_heavy);
        of_class.map(|(_, share)| *share).collect()
    };
    Some([class(false), class(true)])
}

/// Fairness of what callers had admitted of their requests.
fn served_fairness(shares: &[Share]) -> Option<f64> {
    let asked = shares.iter().filter(|share| share.offered > 0);
    number::fairness(asked.map(Share::served))
}

/// Quantiles of what callers had admitted of their requests; callers that sent none do not count.
fn served_at(shares: &[Share], quantiles: [f64; 3]) -> [f64; 3] {
    let asked = shares.iter().filter(|share| share.offered > 0);
    let mut ordered: Vec<f64> = asked.map(Share::served).collect();
    ordered.sort_by(f64::total_cmp);
    quantiles.map(|quantile| number::quantile(&ordered, quantile).unwrap_or(0.0))
}

/// The share of the requests of some callers that was admitted.
fn served(shares: &[Share]) -> f64 {
    let sums = shares.iter().fold((0, 0), |(admitted, offered), share| {
        (
            admitted + u64::from(share.admitted),
            offered + u64::from(share.offered),
        )
    });
    number::ratio(sums.0, sums.1)
}

/// Seconds until goodput over one second first reached [`FOLLOWS`] of what was possible.
fn settle(bins: &[Bin], possible: &[f64]) -> Option<f64> {
    let seconds = bins.windows(BINS_PER_SECOND);
    let mut seconds = seconds.zip(possible.windows(BINS_PER_SECOND));
    let settled = seconds.position(|(bins, possible)| {
        let good: u64 = bins.iter().map(|bin| bin.counts.good).sum();
        float(good) >= FOLLOWS * possible.iter().sum::<f64>()
    });
    settled.map(|index| number::float_len(index) * BIN_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, a caller that sent nothing counted as one of which nothing was admitted.
    #[test]
    fn idle_callers_have_no_share() {
        let share = |offered, admitted| Share { offered, admitted };
        let shares = [share(0, 0), share(4, 2), share(5, 5)];
        let served = |shares: &[Share]| {
            let found = served_at(shares, [0.01, 0.5, 0.99]);
            found.map(|share| format!("{share:.1}"))
        };
        assert_eq!(served(&shares), ["0.5", "0.5", "1.0"]);
        assert_eq!(served(&shares[..1]), ["0.0", "0.0", "0.0"]);
    }
}
