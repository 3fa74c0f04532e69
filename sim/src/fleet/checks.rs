//! What runs are held to.
//!
//! Each phase by itself: goodput, fairness among callers, neither swing nor drift, no needless sheds; a dead service is left alone.
//! And the whole: nothing leaks, and the run stays within its time and memory.

use std::time::Duration;

use super::FleetRun;
use super::figures::{Figures, PhaseFigures};

/// What a run cost the machine.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// How long it took.
    pub took: Duration,
    /// The most memory that the process had by its end, KiB, where the system tells.
    pub memory_kib: Option<u64>,
}

/// Something that a run is held to.
#[derive(Debug, Clone)]
pub struct Check {
    /// What, and what was found.
    pub text: String,
    /// Whether it holds.
    pub is_met: bool,
}

/// Least fairness of the callers' shares in a phase.
const MIN_FAIRNESS: f64 = 0.95;
/// Least goodput, of what could be.
const MIN_SCORE: f64 = 0.95;
/// Most variation of what is in flight at the endpoints: more is a swing or a drift. With a hundred endpoints chance
/// alone makes 0.02.
const MAX_VARIATION: f64 = 0.1;
/// Most requests shed while all could be served, and most that may reach a dead service.
const MAX_NEEDLESS: f64 = 0.001;
const MAX_REACH: f64 = 0.02;
/// What a light caller may have less than a heavy one, which may be chance.
const MAX_DISADVANTAGE: f64 = 0.02;
/// Bounds on the machine, for a run of any size up to the greatest that is promised.
const MAX_TIME: Duration = Duration::from_secs(600);
const MAX_MEMORY_KIB: u64 = 4 * 1024 * 1024;

/// What runs are held to: fairness, goodput, calm, leaks, time and memory.
#[must_use]
pub fn checks(runs: &[(FleetRun, Cost)]) -> Vec<Check> {
    runs.iter()
        .flat_map(|(run, cost)| checks_of(&run.figures, cost))
        .collect()
}

fn checks_of(figures: &Figures, cost: &Cost) -> Vec<Check> {
    let name = format!("{} {}", figures.story, figures.topology);
    let mut checks = Vec::new();
    let mut check = |what: String, is_met: bool| {
        let text = format!("{name}: {what}");
        checks.push(Check { text, is_met });
    };
    for phase in &figures.phases {
        for (what, is_met) in phase_checks(phase) {
            check(format!("{}: {what}", phase.phase.name), is_met);
        }
    }
    check(
        format!("{} requests leaked, none may", figures.leaked),
        figures.leaked == 0,
    );
    check(
        format!(
            "took {:.0} s, at most {}",
            cost.took.as_secs_f64(),
            MAX_TIME.as_secs()
        ),
        cost.took <= MAX_TIME,
    );
    if let Some(kib) = cost.memory_kib {
        check(
            format!(
                "{} MiB of memory, at most {}",
                kib / 1024,
                MAX_MEMORY_KIB / 1024
            ),
            kib <= MAX_MEMORY_KIB,
        );
    }
    checks
}

fn phase_checks(phase: &PhaseFigures) -> Vec<(String, bool)> {
    let shed = phase.shed_by_limit + phase.shed_by_breaker;
    if phase.capacity <= 0.0 {
        let reached = 1.0 - shed;
        let text =
            format!("{reached:.4} of all requests reach the dead service, at most {MAX_REACH}");
        return vec![(text, reached <= MAX_REACH)];
    }
    let fairness = phase.served_fairness.unwrap_or(0.0);
    let mut checks = vec![
        (
            format!(
                "goodput {:.4} of what can be, at least {MIN_SCORE}",
                phase.score
            ),
            phase.score >= MIN_SCORE,
        ),
        (
            format!("fairness of the callers' shares {fairness:.4}, at least {MIN_FAIRNESS}"),
            fairness >= MIN_FAIRNESS,
        ),
    ];
    let swing = &phase.load_swing;
    checks.push((
        format!(
            "requests at the endpoints vary by {:.3} (with a rhythm of {:.2}), at most {MAX_VARIATION}",
            swing.variation, swing.strength
        ),
        swing.variation <= MAX_VARIATION,
    ));
    if phase.offered < phase.capacity {
        let text = format!(
            "{shed:.4} of all requests shed though all could be served, at most {MAX_NEEDLESS}"
        );
        checks.push((text, shed <= MAX_NEEDLESS));
    } else if let (Some(light), Some(heavy)) = (phase.served_light, phase.served_heavy) {
        let text = format!(
            "light callers have {light:.3} of what they ask for, no less than heavy ones ({heavy:.3})"
        );
        checks.push((text, light >= heavy - MAX_DISADVANTAGE));
    }
    checks
}
