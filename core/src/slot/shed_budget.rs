//! The budget of `shed.maxShare`: each request that arrives adds the share to it, and each shed request takes one.
//!
//! So at most this share of the requests of any time is shed, and [`MOST`] more: with ten requests a second as with ten
//! thousand. A count for each tick would say nothing about rare requests. (Retry budgets work in the same
//! way, such as Finagle's and Linkerd's.)

/// The most that is saved, in requests: so many can be shed in a row after a time in which none was.
const MOST: f32 = 10.0;

/// What one worker may shed of one upstream's requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShedBudget {
    /// Requests, 0..=[`MOST`].
    saved: f32,
    /// Requests that arrived since they were last added.
    arrivals: u32,
}

impl ShedBudget {
    /// A request arrives.
    pub(crate) const fn arrive(&mut self) {
        self.arrivals = self.arrivals.saturating_add(1);
    }

    /// Takes one request from the budget; `share` is in 0..=1. Returns whether it may be shed.
    pub(crate) fn take(&mut self, share: f64) -> bool {
        if share <= 0.0 || share >= 1.0 {
            return share >= 1.0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most ten requests, and their fractions matter to no more digits"
        )]
        let more =
            (f64::from(core::mem::take(&mut self.arrivals)) * share).min(f64::from(MOST)) as f32;
        self.saved = (self.saved + more).min(MOST);
        let may_shed = self.saved >= 1.0;
        if may_shed {
            self.saved -= 1.0;
        }
        may_shed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `arrivals` are shed, if all would be.
    fn shed(budget: &mut ShedBudget, share: f64, arrivals: u32) -> u32 {
        let shed = (0..arrivals).filter(|_| {
            budget.arrive();
            budget.take(share)
        });
        u32::try_from(shed.count()).unwrap()
    }

    #[test]
    fn the_share_of_few_and_of_many_requests_is_shed() {
        for (share, arrivals, expected) in [
            (0.0, 1_000, 0),
            (0.25, 3, 0),
            (0.25, 4, 1),
            (0.25, 1_000, 250),
            (0.5, 7, 3),
            (0.75, 1_000, 750),
            (1.0, 7, 7),
        ] {
            let found = shed(&mut ShedBudget::default(), share, arrivals);
            assert_eq!(found, expected, "{share} of {arrivals}");
        }
    }

    #[test]
    fn a_calm_time_saves_ten_requests() {
        for (calm, expected) in [(0, 20), (4, 22), (20, 29), (1_000_000, 29)] {
            let mut budget = ShedBudget::default();
            (0..calm).for_each(|_| budget.arrive());
            assert_eq!(shed(&mut budget, 0.5, 40), expected, "{calm}");
        }
    }

    #[test]
    fn a_changed_share_holds_at_once() {
        let mut budget = ShedBudget::default();
        (0..100).for_each(|_| budget.arrive());
        assert_eq!(shed(&mut budget, 0.5, 1), 1);
        assert_eq!(shed(&mut budget, 0.0, 100), 0, "although some are saved");
        assert_eq!(shed(&mut budget, 1.0, 100), 100);
    }
}
