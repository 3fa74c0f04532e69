//! What one who knows the capacity would have got out of the same arrivals.

use super::{Behaviour, World};

/// A delayed answer of a brownout comes after this many seconds.
pub(crate) const DELAY: f64 = 0.5;

impl World {
    /// Good answers of a fluid server that lets in what it can still answer in time.
    pub(super) fn oracle(&self, arrivals: &[f64]) -> f64 {
        let mean = self.mean_service();
        let (mut work, mut last, mut good) = (0.0_f64, 0.0, 0.0);
        for now in arrivals {
            let stage = self.stage(*now);
            let capacity = f64::from(stage.slots) / mean;
            let share = match stage.behaviour {
                Behaviour::Serve => 1.0,
                Behaviour::Brownout { errors, delayed } => {
                    let in_time = if self.target < DELAY {
                        1.0 - delayed
                    } else {
                        1.0
                    };
                    (1.0 - errors) * in_time
                }
                Behaviour::Fail | Behaviour::Hang => continue,
            };
            work = (work - (now - last) * capacity).max(0.0);
            last = *now;
            if work / capacity + mean <= self.target {
                work += 1.0;
                good += share;
            }
        }
        good
    }
}
