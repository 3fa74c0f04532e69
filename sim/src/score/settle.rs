//! How long it takes until a run follows a change: goodput after a step, sheds after a fall.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ScoredRecord;
use crate::number;

/// Goodput is looked at in steps of this length.
const STEP: Duration = Duration::from_millis(250);

/// Share of the oracle's goodput at which the run has caught up.
const CAUGHT_UP: f64 = 0.95;

/// This many steps together must have caught up. They are a second, because in a single step of 250 ms chance alone moves
/// goodput by 5 %.
const STEPS: usize = 4;

/// Time from `mark` to the first step from which a whole second has caught up; `None` when none ever does.
///
/// The first step of that second must have caught up by half at least, so that the time does not begin too early. Steps in
/// which the oracle gets nothing are ignored.
#[must_use]
pub fn time_until_settled(judged: &[ScoredRecord<'_>], mark: Duration) -> Option<Duration> {
    let mut steps: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for j in judged {
        let Some(after) = j.record.arrival.at.checked_sub(mark) else {
            continue;
        };
        let index = u32::try_from(number::floor(after.as_secs_f64() / STEP.as_secs_f64()))
            .unwrap_or(u32::MAX);
        let step = steps.entry(index).or_default();
        step.0 += f64::from(u8::from(j.good));
        step.1 += j.verdict.good;
    }
    let steps: Vec<(u32, f64, f64)> = steps
        .into_iter()
        .filter(|(_, (_, possible))| *possible > 0.0)
        .map(|(i, (g, p))| (i, g, p))
        .collect();
    let has_caught_up = |second: &&[(u32, f64, f64)]| {
        let (good, possible) = second
            .iter()
            .fold((0.0, 0.0), |sum, step| (sum.0 + step.1, sum.1 + step.2));
        let is_begun = second
            .first()
            .is_some_and(|(_, good, possible)| *good >= 0.5 * possible);
        is_begun && good >= CAUGHT_UP * possible
    };
    let second = steps.windows(STEPS).find(has_caught_up)?;
    second.first().map(|(index, _, _)| STEP * *index)
}

/// Time from `mark` to the last request before `until` that was shed; zero when none was.
#[must_use]
pub fn time_until_calm(judged: &[ScoredRecord<'_>], mark: Duration, until: Duration) -> Duration {
    let sheds = judged
        .iter()
        .filter(|j| j.record.is_shed() && j.record.arrival.at < until)
        .filter_map(|j| j.record.arrival.at.checked_sub(mark));
    sheds.max().unwrap_or_default()
}
