//! How long it takes until goodput follows a change.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Judged;
use crate::number;

/// Goodput is compared with the oracle's within windows of this length.
const WINDOW: Duration = Duration::from_millis(250);

/// Share of the oracle's goodput at which the run has caught up.
const CAUGHT_UP: f64 = 0.95;

/// So many windows in a row must have caught up: a second of calm, not one lucky window.
const CALM_WINDOWS: usize = 4;

/// Time from `mark` to the first window from which goodput lasts; `None` when it never does.
///
/// Windows in which the oracle gets nothing neither help nor hurt.
#[must_use]
pub fn time_until_settled(judged: &[Judged<'_>], mark: Duration) -> Option<Duration> {
    let mut windows: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for j in judged {
        let Some(after) = j.record.arrival.at.checked_sub(mark) else {
            continue;
        };
        let index = u32::try_from(number::floor(after.as_secs_f64() / WINDOW.as_secs_f64()))
            .unwrap_or(u32::MAX);
        let window = windows.entry(index).or_default();
        window.0 += f64::from(u8::from(j.good));
        window.1 += j.verdict.good;
    }
    let caught_up: Vec<(u32, bool)> = windows
        .into_iter()
        .filter(|(_, (_, possible))| *possible > 0.0)
        .map(|(index, (good, possible))| (index, good >= CAUGHT_UP * possible))
        .collect();
    let calm = caught_up
        .windows(CALM_WINDOWS)
        .find(|windows| windows.iter().all(|(_, caught_up)| *caught_up))?;
    calm.first().map(|(index, _)| WINDOW * *index)
}
