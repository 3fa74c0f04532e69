//! One score for each contender, from its costs and benefits.
//!
//! The formula is that of [`tidegate_advise::score`], from "Performance and security of sidecar proxies" (2026). Targets are
//! data ([`ScoreTargets::parse`]); those of this repository are in `loadtests/score.toml`. The publication prints no targets.
//! From its measurements and scores, targets for throughput, CPU and memory can be inferred (8,000 and 10,000 a second, 10
//! and 15, 200 and 150); with these the three columns match the printed ones, which a test checks. Its two latency columns
//! match no target and budget; there the formula applies.
//!
//! Absolute targets hold only for one machine. Ours are multiples of the figures of Envoy alone in the same run, so that the
//! score says how much of them a contender preserves.
//!
//! Edges: without the contender that targets refer to, there is no score. A contender that lacks a figure has no composite,
//! because omitting a part would count it as if it were as good as the others. A budget or a range that is not positive is an
//! error when targets are read.

use std::fmt;

use serde::Deserialize;
use tidegate_advise::score::{Benefit, Cost, ScaleFault, composite};

use crate::result::{CellFigures, Figure};

/// The targets for each part, as in `loadtests/score.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreTargets {
    /// If set, all values below are multiples of this contender's figures; otherwise they have the units below.
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

/// Weights of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// All parts count equally.
    Equal,
    /// The 99th percentile counts twice, the others once.
    DoubleP99,
}

/// The score of each part, 0..=1; `None` if the figure is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellScore {
    /// 95th percentile of latency.
    pub p95: Option<f64>,
    /// 99th percentile of latency.
    pub p99: Option<f64>,
    /// Throughput.
    pub throughput: Option<f64>,
    /// CPU time.
    pub cpu: Option<f64>,
    /// Memory.
    pub memory: Option<f64>,
}

/// Why targets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetsError {
    /// The text is not a valid document.
    #[error("{name}")]
    Format {
        /// The source of the text.
        name: String,
        /// The cause.
        source: toml::de::Error,
    },
    /// A value is out of its range.
    #[error("{name}: {part}.{fault}")]
    Value {
        /// The source of the text.
        name: String,
        /// The part of the score.
        part: &'static str,
        /// What is wrong.
        fault: ScaleFault,
    },
}

/// The targets of this repository.
const OURS: &str = include_str!("../score.toml");

impl ScoreTargets {
    /// Reads targets; `name` is the source of the text, for errors.
    ///
    /// # Errors
    /// If the text is not a valid document, or a budget or range is not positive.
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
        let value = |part, fault| TargetsError::Value {
            name: name.to_owned(),
            part,
            fault,
        };
        for (part, cost) in costs {
            cost.check().map_err(|fault| value(part, fault))?;
        }
        throughput_rps
            .check()
            .map_err(|fault| value("throughput_rps", fault))?;
        Ok(targets)
    }

    /// The targets of this repository, from `loadtests/score.toml`.
    ///
    /// # Errors
    /// When that file is wrong, which a test rules out.
    pub fn ours() -> Result<Self, TargetsError> {
        Self::parse(OURS, "loadtests/score.toml")
    }

    /// The targets in units: multiplies relative values by the figures of `reference`; `None` if it lacks a figure.
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

    /// The score of `figures`, by targets in units.
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
    /// The weighted mean, 0..=1; `None` if a part is missing.
    #[must_use]
    pub fn composite(&self, weights: Weights) -> Option<f64> {
        let p99 = match weights {
            Weights::Equal => 1.0,
            Weights::DoubleP99 => 2.0,
        };
        composite([
            (self.p95, 1.0),
            (self.p99, p99),
            (self.throughput, 1.0),
            (self.cpu, 1.0),
            (self.memory, 1.0),
        ])
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

    /// Inferred: the publication prints no floor, ceiling, target or budget. These match its scores of throughput, CPU and
    /// memory.
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

    /// The publication's figures of one mesh.
    struct PublishedRow {
        mesh: &'static str,
        /// Requests a second, CPU and memory, as measured.
        measured: [f64; 3],
        /// Their scores.
        scores: [f64; 3],
        /// The mean of all five scores, to three places.
        equal: f64,
        /// The second table, its weights divided by their sum.
        p99_twice: f64,
    }

    const PUBLISHED: [PublishedRow; 4] = [
        PublishedRow {
            mesh: "Envoy",
            measured: [9_500.0, 12.0, 220.0],
            scores: [0.75, 0.87, 0.87],
            equal: 0.872,
            p99_twice: 0.88,
        },
        PublishedRow {
            mesh: "Istio mTLS",
            measured: [8_200.0, 22.0, 350.0],
            scores: [0.10, 0.20, 0.00],
            equal: 0.254,
            p99_twice: 0.30,
        },
        PublishedRow {
            mesh: "Istio ambient",
            measured: [8_900.0, 15.0, 280.0],
            scores: [0.45, 0.67, 0.47],
            equal: 0.670,
            p99_twice: 0.70,
        },
        PublishedRow {
            mesh: "Linkerd",
            measured: [9_100.0, 10.0, 200.0],
            scores: [0.55, 1.00, 1.00],
            equal: 0.884,
            p99_twice: 0.89,
        },
    ];

    /// The weights of the publication's second table: all alike, p99 twice as much.
    const SECOND_TABLE: [f64; 5] = [0.2, 0.4, 0.2, 0.2, 0.2];

    #[test]
    fn with_inferred_targets_three_published_columns_come_out() {
        for row in PUBLISHED {
            let [rps, cpu, memory] = row.measured;
            let found = [THROUGHPUT.score(rps), CPU.score(cpu), MEMORY.score(memory)];
            let found = found.map(|score| (score * 100.0).round() / 100.0);
            let is_near = found
                .iter()
                .zip(row.scores)
                .all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(is_near, "{}: found {found:?}", row.mesh);
        }
    }

    /// The five scores of a row. The two latency scores are solved from the means in both tables: two equations, two
    /// unknowns.
    fn all_scores(row: &PublishedRow) -> CellScore {
        let [throughput, cpu, memory] = row.scores;
        let others = throughput + cpu + memory;
        let p99 = 6.0 * row.p99_twice - 5.0 * row.equal;
        let p95 = 5.0 * row.equal - others - p99;
        CellScore {
            p95: Some(p95),
            p99: Some(p99),
            throughput: Some(throughput),
            cpu: Some(cpu),
            memory: Some(memory),
        }
    }

    #[test]
    fn both_published_tables_follow_from_one_set_of_scores() {
        for row in PUBLISHED {
            let scores = all_scores(&row);
            let latency = [scores.p95, scores.p99].map(Option::unwrap);
            assert!(
                latency.iter().all(|score| (0.0..=1.0).contains(score)),
                "{}: {latency:?}",
                row.mesh
            );
            let equal = scores.composite(Weights::Equal).unwrap();
            let twice = scores.composite(Weights::DoubleP99).unwrap();
            assert!((equal - row.equal).abs() < 5e-4, "{}: {equal}", row.mesh);
            assert!(
                (twice - row.p99_twice).abs() < 5e-3,
                "{}: {twice}",
                row.mesh
            );
        }
    }

    #[test]
    fn the_weights_of_the_second_published_table_are_more_than_a_whole() {
        let whole: f64 = SECOND_TABLE.iter().sum();
        assert!((whole - 1.2).abs() < 1e-9);
        for row in PUBLISHED {
            let scores = all_scores(&row);
            let parts = [
                scores.p95,
                scores.p99,
                scores.throughput,
                scores.cpu,
                scores.memory,
            ];
            let found = composite(parts.into_iter().zip(SECOND_TABLE));
            assert_eq!(
                found.map(|score| (score * 100.0).round()),
                Some((row.p99_twice * 100.0).round()),
                "{}: weights are divided by their sum",
                row.mesh
            );
        }
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
