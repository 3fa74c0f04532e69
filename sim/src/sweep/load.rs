//! The load of a story over time.

use std::time::Duration;

use super::rounded;
use super::uniform::Uniform;
use crate::scenario::{Bursts, LoadPoint};

/// Load between bursts, as a multiple of the capacity.
const BURSTS_BASE: f64 = 0.4;
/// Least load within a burst: bursts exceed the capacity.
const LEAST_BURST: f64 = 1.2;
/// Shortest burst, in ms: a shorter one holds only a few requests.
const LEAST_BURST_MS: f64 = 5.0;

/// The shape of a load.
#[derive(Debug, Clone, Copy)]
enum LoadShape {
    /// Always below the capacity.
    Steady,
    /// Above the capacity nearly from the start.
    Over,
    /// Above it for the middle of the run.
    Step,
    /// Up beyond it and down again, evenly.
    Ramp,
    /// Above it for a part of each second or so.
    Bursts,
    /// Above it for every other tenth of the run.
    Spikes,
}

/// A load, as multiples of the capacity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DrawnLoad {
    /// Rate over time.
    pub(super) points: Vec<LoadPoint>,
    /// Spikes that replace that rate.
    pub(super) bursts: Option<Bursts>,
    /// In a few words.
    pub(super) words: String,
}

impl DrawnLoad {
    /// Draws one for a run of some length.
    pub(super) fn drawn(uniform: &mut Uniform, length: Duration) -> Self {
        use LoadShape::{Bursts, Over, Ramp, Spikes, Steady, Step};
        let shape = uniform.one_of(Steady, &[Over, Step, Ramp, Bursts, Spikes]);
        let high = rounded::hundredths(uniform.scale(1.3, 6.0));
        let low = rounded::hundredths(uniform.between(0.3, 0.85));
        let at = |share, x| point(length, share, x);
        let (points, words) = match shape {
            Steady => (vec![at(0.0, low)], format!("steady {low}")),
            Over => (vec![at(0.0, low), at(0.05, high)], format!("over {high}")),
            Step => (
                vec![at(0.0, low), at(0.3, high), at(0.7, low)],
                format!("step {low} -> {high}"),
            ),
            Ramp => (
                vec![at(0.0, 0.1), ramp(at(0.5, high)), ramp(at(1.0, 0.2))],
                format!("ramp to {high}"),
            ),
            Bursts => return bursts(uniform, low, at(0.0, BURSTS_BASE)),
            Spikes => {
                let tenths = (0..10_u32).map(|tenth| {
                    let x = if tenth % 2 == 0 { low } else { high };
                    at(f64::from(tenth) / 10.0, x)
                });
                (tenths.collect(), format!("spikes {low} | {high}"))
            }
        };
        Self {
            points,
            bursts: None,
            words,
        }
    }
}

/// Bursts over a base, which come to a `mean` load where that is enough to exceed the capacity.
fn bursts(uniform: &mut Uniform, mean: f64, base: LoadPoint) -> DrawnLoad {
    let every_ms = uniform.scale(100.0, 2_000.0);
    let share = uniform.between(0.05, 0.2);
    let x = (mean - BURSTS_BASE * (1.0 - share)) / share;
    let bursts = Bursts {
        every: rounded::millis(every_ms),
        length: rounded::millis((every_ms * share).max(LEAST_BURST_MS)),
        x: rounded::hundredths(x.max(LEAST_BURST)),
    };
    DrawnLoad {
        points: vec![base],
        words: format!(
            "bursts of {} in {} ms to {}",
            bursts.length.as_millis(),
            bursts.every.as_millis(),
            bursts.x
        ),
        bursts: Some(bursts),
    }
}

fn point(length: Duration, share: f64, x: f64) -> LoadPoint {
    LoadPoint {
        at: rounded::part(length, share),
        x: Some(x),
        rps: None,
        ramp: false,
    }
}

fn ramp(point: LoadPoint) -> LoadPoint {
    LoadPoint {
        ramp: true,
        ..point
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_shape_is_drawn_and_says_what_it_is() {
        let loads: Vec<DrawnLoad> = (0..60)
            .map(|number| DrawnLoad::drawn(&mut Uniform::of(1, number), Duration::from_secs(30)))
            .collect();
        let first = |load: &DrawnLoad| load.words.split(' ').next().unwrap().to_owned();
        let shapes: BTreeSet<String> = loads.iter().map(first).collect();
        assert_eq!(
            shapes.into_iter().collect::<Vec<_>>(),
            ["bursts", "over", "ramp", "spikes", "steady", "step"]
        );
        let most = |load: &DrawnLoad| {
            let bursts = load.bursts.map(|bursts| bursts.x);
            let rates = load.points.iter().filter_map(|point| point.x);
            rates.chain(bursts).fold(0.0, f64::max)
        };
        for load in &loads {
            assert_eq!(most(load) < 1.0, load.words.starts_with("steady"));
        }
    }
}
