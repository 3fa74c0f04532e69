//! Compares the medians of a benchmark with the targets.

use super::median::Runs;
use crate::variant::Variant;
use tidegate_sim::scenario::{Measure, Scenario};
use tidegate_sim::targets::{ContenderScore, TargetVerdict, Targets};

/// Judges the scenarios that Tidegate played; without any, returns nothing.
#[must_use]
pub fn judge(targets: &Targets, scenarios: &[Scenario], runs: Runs<'_>) -> Vec<TargetVerdict> {
    let played = |scenario: &&Scenario| runs.of(&scenario.name, Variant::Tidegate).count() > 0;
    let played: Vec<&str> = scenarios
        .iter()
        .filter(played)
        .map(|scenario| scenario.name.as_str())
        .collect();
    let median = |scenario: &str, variant, measure| {
        let spread = runs.spread(scenario, variant, measure);
        spread.map(|spread| spread.median)
    };
    let ours = |scenario: &str, measure| median(scenario, Variant::Tidegate, measure);
    let scores = |scenario: &str| {
        let of_one = |variant: Variant| {
            Some(ContenderScore {
                contender: variant.name().to_owned(),
                kind: variant.kind(),
                score: median(scenario, variant, Measure::Score)?,
            })
        };
        // The targets apply to the filter under test; the native module is compared with it.
        let others = runs.variants().into_iter();
        others
            .filter(|variant| *variant != Variant::Native)
            .filter_map(of_one)
            .collect()
    };
    let mut verdicts = targets.judge(&played, ours, scores);
    verdicts.extend(played.iter().filter_map(|scenario| {
        let native = median(scenario, Variant::Native, Measure::Score)?;
        Some(beside(scenario, native, ours(scenario, Measure::Score)?))
    }));
    verdicts
}

/// How far the score of the native module may be below the WebAssembly module's: both have the same laws.
const BEHIND_WASM: f64 = 0.01;

fn beside(scenario: &str, native: f64, wasm: f64) -> TargetVerdict {
    TargetVerdict {
        scenario: scenario.to_owned(),
        target: format!("native at most {BEHIND_WASM} below the WebAssembly module"),
        found: format!("{native:.4}, {wasm:.4}"),
        is_met: native >= wasm - BEHIND_WASM,
    }
}

/// The expectations of the scenario files that the Tidegate runs miss, each as a verdict.
#[must_use]
pub fn missed_expectations(scenarios: &[Scenario], runs: Runs<'_>) -> Vec<TargetVerdict> {
    let mut missed = Vec::new();
    for scenario in scenarios {
        if runs.of(&scenario.name, Variant::Tidegate).count() == 0 {
            continue;
        }
        for (measure, range) in &scenario.expect {
            let spread = runs.spread(&scenario.name, Variant::Tidegate, *measure);
            let found = spread.map(|spread| spread.median);
            if !found.is_some_and(|value| range.contains(value)) {
                missed.push(TargetVerdict {
                    scenario: scenario.name.clone(),
                    target: format!("expected {measure} {range}"),
                    found: found.map_or_else(|| "nothing".to_owned(), |f| format!("{f:.4}")),
                    is_met: false,
                });
            }
        }
    }
    missed
}

/// Head of the table of verdicts.
pub const HEAD: [&str; 4] = ["scenario", "target", "found", ""];

/// A row of the table of verdicts.
#[must_use]
pub fn row(verdict: &TargetVerdict) -> Vec<String> {
    let word = if verdict.is_met { "met" } else { "MISSED" };
    vec![
        verdict.scenario.clone(),
        verdict.target.clone(),
        verdict.found.clone(),
        word.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunOutcome;
    use tidegate_sim::score::Figures;

    fn outcome(variant: Variant, score: f64) -> RunOutcome {
        RunOutcome {
            scenario: "a".to_owned(),
            variant,
            figures: Figures {
                score,
                ..Figures::default()
            },
            envoy_cpu_s: 0.0,
            envoy_resident_bytes: 0,
            windows: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn scenario() -> Scenario {
        let text = "name='a'\ntitle='t'\nprose='p'\nseed=7\nduration='10s'\n[[clients]]\nload=[{at='0s', x=0.5}]\n[expect]\nscore={min=0.99}";
        Scenario::parse(text, "test").unwrap()
    }

    fn targets() -> Targets {
        let text = "scenarios.a = { score = { min = 0.97 } }\n[comparison]\nbehind_best_untuned = 0.01\nbehind_tuned = 0.02";
        Targets::parse(text, "test").unwrap()
    }

    #[test]
    fn the_median_decides_and_the_tuned_rival_is_told_from_the_others() {
        let outcomes = [
            outcome(Variant::Tidegate, 0.90),
            outcome(Variant::Tidegate, 0.98),
            outcome(Variant::Tidegate, 0.99),
            outcome(Variant::StaticTuned, 1.01),
            outcome(Variant::None, 0.5),
        ];
        let verdicts = judge(&targets(), &[scenario()], Runs(&outcomes));
        let met: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_met).collect();
        assert_eq!(met, [true, true, false], "{verdicts:?}");
        let missed = missed_expectations(&[scenario()], Runs(&outcomes));
        assert_eq!(missed.len(), 1, "0.98 < 0.99");
    }

    #[test]
    fn nothing_is_judged_where_tidegate_did_not_run() {
        let outcomes = [outcome(Variant::None, 0.5)];
        assert_eq!(judge(&targets(), &[scenario()], Runs(&outcomes)), []);
        assert_eq!(missed_expectations(&[scenario()], Runs(&outcomes)), []);
    }
}
