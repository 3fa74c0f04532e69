//! Checks of fleet runs.
//!
//! For each phase: goodput, fairness among callers, neither swing nor drift, no needless sheds, and few requests to a dead
//! service. For the whole run: no leaks, and bounds on time and memory.

use std::fmt;
use std::time::Duration;

use super::FleetRun;
use super::figures::{FleetFigures, FleetPhaseFigures};

/// What a run cost the machine.
#[derive(Debug, Clone, Copy)]
pub struct RunCost {
    /// How long it took.
    pub took: Duration,
    /// The most memory that the process had by its end, in KiB, where the system reports it.
    pub memory_kib: Option<u64>,
}

/// One check of a run.
#[derive(Debug, Clone)]
pub struct FleetCheck {
    /// The check and its result.
    pub text: String,
    /// Whether it holds.
    pub is_met: bool,
}

/// Least fairness of the shares of callers with equal demand.
const MIN_FAIRNESS: CheckBound = CheckBound::aim(0.95);
/// Where the laws do not make shares equal (`docs/laws/fairness.md` says why), the measured fairness less a margin: among
/// callers that always ask for more than their share ...
const KNOWN_FAIRNESS_OF_HEAVY: CheckBound = CheckBound {
    aim: 0.95,
    known: 0.85,
};
/// ... and where one of few proxies has more than its share for a whole overload.
const KNOWN_FAIRNESS_OF_FEW: CheckBound = CheckBound {
    aim: 0.95,
    known: 0.55,
};
/// Up to this many proxies are few: each has a large share.
const FEW_PROXIES: u32 = 10;
/// Least goodput, as a share of what is possible.
const MIN_SCORE: f64 = 0.95;
/// Most variation of what is in flight at the endpoints: more is a swing or a drift. With a hundred endpoints chance
/// alone makes 0.02.
const MAX_VARIATION: CheckBound = CheckBound::aim(0.1);
/// While there is too much load, all proxies that hold a queue cut it by a quarter on each beat: between 1 and 0.75 of it
/// variation comes to 0.143 at most.
const KNOWN_VARIATION: CheckBound = CheckBound {
    aim: 0.1,
    known: 0.15,
};
/// Most requests shed while all could be served, and most that may reach a dead service.
const MAX_NEEDLESS: f64 = 0.001;
const MAX_REACH: f64 = 0.02;
/// How far the share that light callers get may be below that of heavy ones by chance.
const MAX_DISADVANTAGE: f64 = 0.02;
/// Bounds on the machine, for a run of any size up to the greatest that is promised.
const MAX_TIME: Duration = Duration::from_secs(600);
const MAX_MEMORY_KIB: u64 = 4 * 1024 * 1024;

/// The target, and the bound that is checked where the laws are known to miss it, so that a regression fails.
#[derive(Debug, Clone, Copy)]
struct CheckBound {
    aim: f64,
    known: f64,
}

impl CheckBound {
    const fn aim(aim: f64) -> Self {
        Self { aim, known: aim }
    }
}

impl fmt::Display for CheckBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (self.aim - self.known).abs() > f64::EPSILON {
            write!(f, "{} (known limit; the aim is {})", self.known, self.aim)
        } else {
            write!(f, "{}", self.aim)
        }
    }
}

/// The checks: fairness, goodput, stability, leaks, time and memory.
#[must_use]
pub fn checks(runs: &[(FleetRun, RunCost)]) -> Vec<FleetCheck> {
    runs.iter()
        .flat_map(|(run, cost)| checks_of(&run.figures, cost))
        .collect()
}

fn checks_of(figures: &FleetFigures, cost: &RunCost) -> Vec<FleetCheck> {
    let name = format!("{} {}", figures.story, figures.topology);
    let mut checks = Vec::new();
    let mut check = |what: String, is_met: bool| {
        let text = format!("{name}: {what}");
        checks.push(FleetCheck { text, is_met });
    };
    for phase in &figures.phases {
        for (what, is_met) in phase_checks(phase, figures.proxies) {
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

fn phase_checks(phase: &FleetPhaseFigures, proxies: u32) -> Vec<(String, bool)> {
    let shed = phase.shed_by_limit + phase.shed_by_breaker;
    if phase.capacity <= 0.0 {
        let reached = 1.0 - shed;
        let text =
            format!("{reached:.4} of all requests reach the dead service, at most {MAX_REACH}");
        return vec![(text, reached <= MAX_REACH)];
    }
    let is_too_much = phase.offered > phase.capacity;
    let among = phase.alike_fairness.or(phase.served_fairness);
    let fairness = among.unwrap_or(0.0);
    let min_fairness = match phase.alike_fairness {
        _ if !is_too_much || proxies == 1 => MIN_FAIRNESS,
        _ if proxies <= FEW_PROXIES => KNOWN_FAIRNESS_OF_FEW,
        Some(_) => KNOWN_FAIRNESS_OF_HEAVY,
        None => MIN_FAIRNESS,
    };
    let max_variation = if is_too_much {
        KNOWN_VARIATION
    } else {
        MAX_VARIATION
    };
    let mut checks = vec![
        (
            format!(
                "goodput {:.4} of what can be, at least {MIN_SCORE}",
                phase.score
            ),
            phase.score >= MIN_SCORE,
        ),
        (
            format!(
                "fairness of the shares of like callers {fairness:.4}, at least {min_fairness}"
            ),
            fairness >= min_fairness.known,
        ),
    ];
    let swing = &phase.load_swing;
    checks.push((
        format!(
            "requests at the endpoints vary by {:.3} (with a rhythm of {:.2}), at most {max_variation}",
            swing.variation, swing.strength
        ),
        swing.variation <= max_variation.known,
    ));
    if !is_too_much {
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
