//! An adversary in a story of all axes. It is drawn last, so that a story without one does not change.

use std::time::Duration;

use super::rounded;
use super::uniform::Uniform;
use crate::profile::Lie;
use crate::scenario::adversary::Cut;
use crate::scenario::{Adversary, AdversaryKind, Scenario};

/// Chance that a story has an adversary.
const ADVERSARIES: f64 = 0.2;
/// Rate of one, as a multiple of what the service can serve of such requests.
const RATE: (f64, f64) = (0.05, 1.0);
/// Rate of a flood, likewise.
const FLOOD: (f64, f64) = (0.5, 2.0);
/// Pauses between endless retries, ms: closer ones would make a run of millions of requests.
const BACKOFF_MS: (f64, f64) = (100.0, 1_000.0);

/// Draws whether a story has an adversary, and of which kind.
pub(super) fn add(story: &mut Scenario, uniform: &mut Uniform) {
    if !uniform.happens(ADVERSARIES) {
        return;
    }
    let [first, others @ ..] = AdversaryKind::ALL;
    let kind = uniform.one_of(first, &others);
    let (low, high) = if kind == AdversaryKind::Flood {
        FLOOD
    } else {
        RATE
    };
    let x = rounded::hundredths(uniform.scale(low, high)).max(0.01);
    let mut adversary = Adversary::of(kind, x);
    match kind {
        AdversaryKind::OverQuota => {
            let capacity = story
                .clients
                .first()
                .map(|client| story.capacity_for(client));
            let granted = capacity.unwrap_or(1.0) * x * uniform.between(0.1, 0.6);
            adversary.granted = Some(rounded::hundredths(granted).max(0.1));
        }
        AdversaryKind::ShortDeadline => {
            adversary.cut = Some(uniform.one_of(Cut::Cancel, &[Cut::Header]));
        }
        AdversaryKind::EndlessRetries => {
            let (low, high) = BACKOFF_MS;
            let backoff: Duration = rounded::millis(uniform.scale(low, high));
            adversary.backoff = Some(backoff);
        }
        AdversaryKind::LyingUpstream => {
            let huge = Lie::HugeHeaders { bytes: 96 << 10 };
            adversary.lie = Some(uniform.one_of(Lie::default(), &[Lie::Silence, huge]));
        }
        _ => {}
    }
    story.title.push_str(&format!("; adversary {kind} at {x}"));
    story.adversaries.push(adversary);
}
