//! One score for each contender from what it costs and what it gives.
//!
//! As in "Performance and security of sidecar proxies" (2026): a cost scores `clamp(1 - (x - target) / budget, 0, 1)`,
//! a benefit `clamp((x - floor) / (ceiling - floor), 0, 1)`, and the composite is their weighted sum. Targets are data
//! ([`ScoreTargets::parse`]); those of this repository are in `loadtests/score.toml`. With the publication's targets and
//! measurements its throughput, CPU and memory columns come out as printed, which a test checks. Its two latency
//! columns do not follow its own formula, whatever target and budget are put in; here the formula counts.
//!
//! Absolute targets hold on one machine only. Ours are multiples of what Envoy alone has in the same run, so that the
//! score says how much of it a contender leaves.
//!
//! Edges: where the contender is missing that targets are multiples of, there is no score; a contender that
//! lacks a figure has no composite, because a part that is left out would count as if it were as good as the others.
//! A budget or a range that is not positive is refused when targets are read.

use std::fmt;

use serde::Deserialize;

use crate::result::{CellFigures, Figure};

/// What is asked for each part, as in `loadtests/score.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreTargets {
    /// The contender of whose figures all values below are multiples; none: they have units of their own.
    pub relative_to: Option<String>,
    /// 95th percentile of latency, in milliseconds.
    pub p95_ms: Cost,
    /// 99th percentile of latency, in milliseconds.
    pub p99_ms: Cost,
    /// Requests a second.
    pub throughput_rps: Benefit,
    /// CPU time of the proxies for each request, in microseconds.
    pub cpu_us: Cost,
    /// Resident memory of the proxies, in MiB.
    pub memory_mib: Cost,
}

/// The less the better.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Up to here the score is 1.
    pub target: f64,
    /// So much above the target the score is 0.
    pub budget: f64,
}

/// The more the better.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benefit {
    /// Up to here the score is 0.
    pub floor: f64,
    /// From here on the score is 1.
    pub ceiling: f64,
}

/// How much each part counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// All alike.
    Equal,
    /// The 99th percentile twice, the others once.
    DoubleP99,
}

/// A score, part by part; 0..=1 each, none where the figure is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellScore {
    /// Of the 95th percentile.
    pub p95: Option<f64>,
    /// Of the 99th percentile.
    pub p99: Option<f64>,
    /// Of throughput.
    pub throughput: Option<f64>,
    /// Of CPU time.
    pub cpu: Option<f64>,
    /// Of memory.
    pub memory: Option<f64>,
}

/// Why targets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetsError {
    /// The text is no such document.
    #[error("{name}")]
    Format {
        /// Where the text is from.
        name: String,
        /// The cause.
        source: toml::de::Error,
    },
    /// A value cannot be.
    #[error("{name}: {path}: found {found}, expected {expected}")]
    Value {
        /// Where the text is from.
        name: String,
        /// The field.
        path: String,
        /// What it says.
        found: f64,
        /// What it should say.
        expected: &'static str,
    },
}

/// The targets of this repository.
const OURS: &str = include_str!("../score.toml");

impl Cost {
    /// The score of a cost.
    #[must_use]
    pub fn score(self, value: f64) -> f64 {
        (1.0 - (value - self.target) / self.budget).clamp(0.0, 1.0)
    }
}

impl Benefit {
    /// The score of a benefit.
    #[must_use]
    pub fn score(self, value: f64) -> f64 {
        ((value - self.floor) / (self.ceiling - self.floor)).clamp(0.0, 1.0)
    }
}

impl ScoreTargets {
    /// Reads targets; `name` says in errors where the text is from.
    ///
    /// # Errors
    /// When the text is no such document, or a budget or range is not positive.
    pub fn parse(text: &str, name: &str) -> Result<Self, TargetsError> {
        let format = |source| TargetsError::Format {
            name: name.to_owned(),
            source,
        };
        let targets: Self = toml::from_str(text).map_err(format)?;
        let Self {
            relative_to: _,
            p95_ms,
            p99_ms,
            throughput_rps,
            cpu_us,
            memory_mib,
        } = targets;
        let costs = [
            ("p95_ms", p95_ms),
            ("p99_ms", p99_ms),
            ("cpu_us", cpu_us),
            ("memory_mib", memory_mib),
        ];
        let value = |path: String, found: f64, expected| TargetsError::Value {
            name: name.to_owned(),
            path,
            found,
            expected,
        };
        for (path, cost) in costs {
            let is_positive = cost.budget > 0.0 && cost.budget.is_finite();
            if !is_positive {
                return Err(value(
                    format!("{path}.budget"),
                    cost.budget,
                    "a number above 0",
                ));
            }
            if !cost.target.is_finite() {
                return Err(value(format!("{path}.target"), cost.target, "a number"));
            }
        }
        let Benefit { floor, ceiling } = throughput_rps;
        if ceiling > floor && ceiling.is_finite() && floor.is_finite() {
            Ok(targets)
        } else {
            Err(value(
                "throughput_rps.ceiling".to_owned(),
                ceiling,
                "a number above the floor",
            ))
        }
    }

    /// The targets of this repository, from `loadtests/score.toml`.
    ///
    /// # Errors
    /// When that file is wrong, which a test rules out.
    pub fn ours() -> Result<Self, TargetsError> {
        Self::parse(OURS, "loadtests/score.toml")
    }

    /// The targets with units of their own: what is a multiple is multiplied by what `reference` has; none where it
    /// lacks a figure.
    #[must_use]
    pub fn of(&self, reference: &CellFigures) -> Option<Self> {
        let cost = |cost: Cost, figure: Figure| {
            let unit = figure.of(reference).filter(|unit| *unit > 0.0)?;
            Some(Cost {
                target: cost.target * unit,
                budget: cost.budget * unit,
            })
        };
        let rps = Figure::Qps.of(reference).filter(|rps| *rps > 0.0)?;
        Some(Self {
            relative_to: None,
            p95_ms: cost(self.p95_ms, Figure::P95Ms)?,
            p99_ms: cost(self.p99_ms, Figure::P99Ms)?,
            throughput_rps: Benefit {
                floor: self.throughput_rps.floor * rps,
                ceiling: self.throughput_rps.ceiling * rps,
            },
            cpu_us: cost(self.cpu_us, Figure::CpuMicros)?,
            memory_mib: cost(self.memory_mib, Figure::RssMib)?,
        })
    }

    /// The score of what was measured, by targets with units of their own.
    #[must_use]
    pub fn score(&self, figures: &CellFigures) -> CellScore {
        let of = |figure: Figure| figure.of(figures);
        CellScore {
            p95: of(Figure::P95Ms).map(|value| self.p95_ms.score(value)),
            p99: of(Figure::P99Ms).map(|value| self.p99_ms.score(value)),
            throughput: of(Figure::Qps).map(|value| self.throughput_rps.score(value)),
            cpu: of(Figure::CpuMicros).map(|value| self.cpu_us.score(value)),
            memory: of(Figure::RssMib).map(|value| self.memory_mib.score(value)),
        }
    }
}

impl CellScore {
    /// The weighted sum, 0..=1; none where a part is missing.
    #[must_use]
    pub fn composite(&self, weights: Weights) -> Option<f64> {
        let p99 = match weights {
            Weights::Equal => 1.0,
            Weights::DoubleP99 => 2.0,
        };
        let parts = [
            (self.p95, 1.0),
            (self.p99, p99),
            (self.throughput, 1.0),
            (self.cpu, 1.0),
            (self.memory, 1.0),
        ];
        let whole: f64 = parts.iter().map(|(_, weight)| weight).sum();
        let sum: Option<f64> = parts
            .iter()
            .map(|(part, weight)| part.map(|part| part * weight))
            .sum();
        sum.map(|sum| sum / whole)
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equal => "equal weights",
            Self::DoubleP99 => "p99 twice",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Target and budget, floor and ceiling as published.
    const THROUGHPUT: Benefit = Benefit {
        floor: 8_000.0,
        ceiling: 10_000.0,
    };
    const CPU: Cost = Cost {
        target: 10.0,
        budget: 15.0,
    };
    const MEMORY: Cost = Cost {
        target: 200.0,
        budget: 150.0,
    };

    /// Requests a second, CPU and memory as published, and the scores that follow to two places.
    const PUBLISHED: [(&str, [f64; 3], [f64; 3]); 4] = [
        ("Envoy", [9_500.0, 12.0, 220.0], [0.75, 0.87, 0.87]),
        ("Istio mTLS", [8_200.0, 22.0, 350.0], [0.10, 0.20, 0.00]),
        ("Istio ambient", [8_900.0, 15.0, 280.0], [0.45, 0.67, 0.47]),
        ("Linkerd", [9_100.0, 10.0, 200.0], [0.55, 1.00, 1.00]),
    ];

    #[test]
    fn published_columns_of_throughput_cpu_and_memory_come_out() {
        for (name, [rps, cpu, memory], expected) in PUBLISHED {
            let found = [THROUGHPUT.score(rps), CPU.score(cpu), MEMORY.score(memory)];
            let found = found.map(|score| (score * 100.0).round() / 100.0);
            let is_near = found
                .iter()
                .zip(expected)
                .all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(is_near, "{name}: found {found:?}, expected {expected:?}");
        }
    }

    #[test]
    fn scores_stay_within_0_and_1() {
        assert_eq!((CPU.score(0.0), CPU.score(1_000.0)), (1.0, 0.0));
        assert_eq!((THROUGHPUT.score(0.0), THROUGHPUT.score(1e9)), (0.0, 1.0));
    }

    #[test]
    fn relative_targets_are_multiples_of_what_the_reference_has() {
        let alone = CellFigures {
            seconds: Some(1.0),
            requests: Some(10_000.0),
            qps: Some(10_000.0),
            cpu_seconds: Some(0.4),
            p95_ms: Some(3.0),
            p99_ms: Some(4.0),
            rss_mib: Some(60.0),
            ..CellFigures::default()
        };
        let targets = ScoreTargets::ours().unwrap().of(&alone).unwrap();
        assert_eq!(targets.score(&alone).composite(Weights::Equal), Some(1.0));
        let dearer = CellFigures {
            qps: Some(7_500.0),
            rss_mib: Some(90.0),
            p99_ms: Some(8.0),
            ..alone
        };
        let score = targets.score(&dearer);
        assert_eq!(
            (score.p95, score.p99, score.throughput, score.memory),
            (Some(1.0), Some(0.0), Some(0.5), Some(0.5))
        );
        let lacking = CellFigures {
            rss_mib: None,
            ..alone
        };
        assert_eq!(ScoreTargets::ours().unwrap().of(&lacking), None);
    }

    #[test]
    fn weights_change_the_composite_and_a_missing_part_leaves_none() {
        let score = CellScore {
            p95: Some(1.0),
            p99: Some(0.4),
            throughput: Some(1.0),
            cpu: Some(1.0),
            memory: Some(1.0),
        };
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        assert!(near(score.composite(Weights::Equal), 4.4 / 5.0));
        assert!(near(score.composite(Weights::DoubleP99), 4.8 / 6.0));
        assert_eq!(
            CellScore { cpu: None, ..score }.composite(Weights::Equal),
            None
        );
    }

    #[test]
    fn our_targets_are_a_whole_document_and_wrong_ones_are_named() {
        ScoreTargets::ours().unwrap();
        let wrong = OURS.replacen("p95_ms = { target", "p95_ms = { goal", 1);
        assert!(matches!(
            ScoreTargets::parse(&wrong, "x"),
            Err(TargetsError::Format { .. })
        ));
        let none = "p95_ms={target=1,budget=0}\np99_ms={target=1,budget=1}\nthroughput_rps={floor=1,ceiling=2}\n\
            cpu_us={target=1,budget=1}\nmemory_mib={target=1,budget=1}";
        let said = ScoreTargets::parse(none, "x.toml").unwrap_err().to_string();
        assert_eq!(
            said,
            "x.toml: p95_ms.budget: found 0, expected a number above 0"
        );
        let upside_down = none
            .replace("budget=0", "budget=1")
            .replace("ceiling=2", "ceiling=1");
        let said = ScoreTargets::parse(&upside_down, "x.toml")
            .unwrap_err()
            .to_string();
        assert_eq!(
            said,
            "x.toml: throughput_rps.ceiling: found 1, expected a number above the floor"
        );
    }
}
