//! Which faults occur, in which order: a function of the seed.
//!
//! Faults come in rounds. Each round has every kind once, in its own order, so that a sufficiently long run has all of them.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::fault::{FaultKind, InjectedFault, UpstreamSide};

/// Start of the processes, and the undisturbed part that later parts are compared with.
pub const BEGINNING: Duration = Duration::from_secs(12);

/// Time that a fault takes beyond its duration: to undo it, to recover, to observe, and to rest.
const AFTERMATH: Duration = Duration::from_secs(4);

/// Length of undisturbed load before a fault, milliseconds.
const BEFORE_MS: (u64, u64) = (200, 1_000);

/// One fault and the load before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChaosStep {
    /// Undisturbed load before it.
    pub before: Duration,
    /// The fault.
    pub fault: InjectedFault,
}

/// The steps of a run of about this length, without an incomplete last step.
#[must_use]
pub fn plan(seed: u64, kinds: &[FaultKind], length: Duration) -> Vec<ChaosStep> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut steps = Vec::new();
    let mut left = length.saturating_sub(BEGINNING);
    while !kinds.is_empty() {
        let mut round = kinds.to_vec();
        round.shuffle(&mut rng);
        for kind in round {
            let step = draw(kind, &mut rng);
            let takes = step.before + step.fault.lasts() + AFTERMATH;
            if takes > left {
                return steps;
            }
            left -= takes;
            steps.push(step);
        }
    }
    steps
}

fn draw(kind: FaultKind, rng: &mut StdRng) -> ChaosStep {
    let between = |rng: &mut StdRng, (least, most): (u64, u64)| rng.random_range(least..=most);
    let before = Duration::from_millis(between(rng, BEFORE_MS));
    let side = if rng.random() {
        UpstreamSide::Alpha
    } else {
        UpstreamSide::Beta
    };
    let fault = InjectedFault {
        kind,
        side,
        lasts_ms: between(rng, kind.lasts_ms()),
        seed: rng.random(),
    };
    ChaosStep { before, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTES: Duration = Duration::from_secs(300);

    #[test]
    fn one_seed_has_one_plan() {
        assert_eq!(
            plan(7, &FaultKind::ALL, MINUTES),
            plan(7, &FaultKind::ALL, MINUTES)
        );
        assert_ne!(
            plan(7, &FaultKind::ALL, MINUTES),
            plan(8, &FaultKind::ALL, MINUTES)
        );
    }

    #[test]
    fn a_longer_run_goes_on_where_a_shorter_one_ends() {
        let (short, long) = (
            plan(7, &FaultKind::ALL, MINUTES),
            plan(7, &FaultKind::ALL, 2 * MINUTES),
        );
        assert!(short.len() < long.len());
        assert_eq!(long[..short.len()], short);
    }

    #[test]
    fn two_minutes_have_every_kind() {
        for seed in 0..100 {
            let kinds: Vec<FaultKind> = plan(seed, &FaultKind::ALL, Duration::from_secs(120))
                .iter()
                .map(|step| step.fault.kind)
                .collect();
            for kind in FaultKind::ALL {
                assert!(kinds.contains(&kind), "seed {seed} has no {kind}");
            }
        }
    }

    #[test]
    fn only_what_is_asked_for_comes_and_nothing_in_no_time() {
        let steps = plan(1, &[FaultKind::Pushes], MINUTES);
        assert!(!steps.is_empty());
        assert!(
            steps
                .iter()
                .all(|step| step.fault.kind == FaultKind::Pushes)
        );
        assert_eq!(plan(1, &FaultKind::ALL, BEGINNING), []);
        assert_eq!(plan(1, &[], MINUTES), []);
    }

    #[test]
    fn a_fault_lasts_as_long_as_its_kind_may() {
        for step in plan(3, &FaultKind::ALL, 10 * MINUTES) {
            let (least, most) = step.fault.kind.lasts_ms();
            assert!((least..=most).contains(&step.fault.lasts_ms), "{step:?}");
        }
    }
}
