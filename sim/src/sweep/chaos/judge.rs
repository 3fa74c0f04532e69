//! What must hold after a story's faults.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::RECOVERED_AT;
use crate::contender::ContenderError;
use crate::fault::ProxyFault;
use crate::kind::ContenderKind;
use crate::number;
use crate::run::Run;
use crate::scenario::{Incident, Scenario};
use crate::world;

/// The judged part brings at least this share of the good answers that it brings without the faults, ...
const GOOD_SHARE: f64 = 0.85;
/// ... less this many standard deviations of their count, as of independent events.
const DEVIATIONS: f64 = 3.0;
/// Under overload the limit, which then decides, is within this factor of what it is without the faults, or within the band
/// in which it may move.
const LIMIT_FACTOR: f64 = 2.0;
/// From this multiple of the capacity on, a load is an overload.
const OVERLOAD: f64 = 1.2;

/// The results of one part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Good answers.
    pub good: f64,
    /// Sum of the proxies' limits, on average over the samples.
    pub limit: f64,
    /// Samples in which a breaker was not closed, in any worker.
    pub not_closed: usize,
}

/// Plays a story with its faults and without, and returns all violations.
///
/// # Errors
/// When the contender cannot be made for it.
pub fn judge(story: &Scenario, kind: &ContenderKind) -> Result<Vec<String>, ContenderError> {
    let run = world::play(story, kind)?;
    let other = world::play(&super::undisturbed(story), kind)?;
    Ok(faults(story, &run, &other))
}

/// All violations of a run, compared with the same run without faults.
#[must_use]
pub fn faults(story: &Scenario, run: &Run, other: &Run) -> Vec<String> {
    let mut faults = Vec::new();
    if run.leaked != Some(0) {
        faults.push(format!("{:?} in flight at the end, not 0", run.leaked));
    }
    let sheds: u64 = run.sheds.values().sum();
    if run.asked != run.admitted + sheds {
        let (asked, admitted) = (run.asked, run.admitted);
        faults.push(format!("{asked} asked, {admitted} admitted, {sheds} shed"));
    }
    let told: u64 = run
        .records
        .iter()
        .map(|record| u64::from(record.sheds))
        .sum();
    if told != sheds {
        faults.push(format!("{sheds} shed, and callers heard of {told}"));
    }
    let (found, expected) = (part(story, run), part(story, other));
    if !is_band_judged(story) {
        return faults;
    }
    if found.not_closed > 0 && expected.not_closed == 0 {
        let looks = found.not_closed;
        faults.push(format!("a breaker was not closed at {looks} looks"));
    }
    let least = GOOD_SHARE * expected.good - DEVIATIONS * expected.good.sqrt();
    if found.good < least {
        let (good, without) = (found.good, expected.good);
        faults.push(format!("{good} good answers, {without} without faults"));
    }
    let band = band(story);
    let ratio = found.limit / expected.limit.max(1.0);
    let is_alike = (1.0 / LIMIT_FACTOR..=LIMIT_FACTOR).contains(&ratio);
    if is_overloaded(story) && !is_alike && !band.contains(&found.limit) {
        let (limit, without) = (found.limit, expected.limit);
        faults.push(format!(
            "limit {limit:.1}, {without:.1} without faults, and not in {band:.1?}"
        ));
    }
    faults
}

/// The results of the judged part of a run.
#[must_use]
pub fn part(story: &Scenario, run: &Run) -> Part {
    let is_judged = |at: Duration| at >= RECOVERED_AT && at < story.duration;
    let records = run.records.iter();
    let judged = records.filter(|record| is_judged(record.arrival.at));
    let good = judged.filter(|record| record.is_good(story.latency_at(record.arrival.at)));
    let samples = run.samples.iter();
    let judged = samples.filter(|sample| is_judged(Duration::from_secs_f64(sample.at_s)));
    let judged: Vec<_> = judged.collect();
    let limits: f64 = judged
        .iter()
        .filter_map(|sample| sample.limit)
        .map(|limit| f64::from(u32::try_from(limit).unwrap_or(u32::MAX)))
        .sum();
    Part {
        good: number::float_len(good.count()),
        limit: limits / number::float_len(judged.len().max(1)),
        not_closed: judged
            .iter()
            .filter(|sample| sample.breaker.is_some_and(|breaker| breaker > 0))
            .count(),
    }
}

/// Whether goodput, limit and breakers are compared with those without faults. A limiter that starts in the middle of an
/// overload, or that learned under another objective, has to learn from an overloaded service. That takes longer than a
/// story, or fails. It is a property of the laws (`docs/laws/`), not a leftover of a fault.
#[must_use]
pub fn is_band_judged(story: &Scenario) -> bool {
    let begins_anew = |incident: &Incident| {
        matches!(
            incident.what,
            ProxyFault::ProxyJoins | ProxyFault::PushOther
        )
    };
    !(is_overloaded(story) && story.incidents.iter().any(begins_anew))
}

/// Limits that leave at most half of the service idle, and that allow answers within the objective: by Little's law that is
/// the number of requests in flight when each takes as long as the objective.
fn band(story: &Scenario) -> RangeInclusive<f64> {
    let upstreams = story.upstreams.iter().map(|upstream| &upstream.behaviour);
    upstreams.fold(0.0..=0.0, |band, behaviour| {
        let least = behaviour.all_slots() / 2.0;
        let most = behaviour.capacity() * story.slo.latency.as_secs_f64();
        band.start() + least..=band.end() + most
    })
}

// Stories of faults have no closed loops.
fn is_overloaded(story: &Scenario) -> bool {
    let mut points = story.clients.iter().flat_map(|client| &client.load);
    points.any(|point| point.x.is_some_and(|x| x >= OVERLOAD))
}
