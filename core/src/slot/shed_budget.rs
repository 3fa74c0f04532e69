//! The budget of `shed.maxShare`: each request that arrives adds the share to it, and each shed request takes one.
//!
//! So at most this share of the requests of any time is shed, and [`MOST`] more: with ten requests a second as with ten
//! thousand. A count for each tick would say nothing about rare requests. (Retry budgets work in the same
//! way, such as Finagle's and Linkerd's.)

/// The most that is saved, in requests: so many can be shed in a row after a time in which none was.
const MOST: f32 = 10.0;

/// What one worker may shed of one upstream's requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShedBudget {
    /// Requests, 0..=[`MOST`].
    saved: f32,
    /// The number of arrivals when they were last added.
    counted: u64,
}

impl ShedBudget {
    /// Whether a request may be shed, if a share of 0..=1 says so without a budget.
    pub(super) fn without_budget(share: f64) -> Option<bool> {
        (share <= 0.0 || share >= 1.0).then_some(share >= 1.0)
    }

    /// Takes one request from the budget after so many `arrivals` in all; `share` is in 0..=1. Returns whether it may be shed.
    pub(super) fn take(&mut self, share: f64, arrivals: u64) -> bool {
        if let Some(may_shed) = Self::without_budget(share) {
            return may_shed;
        }
        // The count has 32 bits and starts over; then the budget misses some requests, once.
        let new = arrivals.saturating_sub(self.counted);
        self.counted = arrivals;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "at most ten requests, and their fractions matter to no more digits"
        )]
        let more = (new as f64 * share).min(f64::from(MOST)) as f32;
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

    /// How many of `requests` are shed, if all would be, after `calm` others.
    fn shed(budget: &mut ShedBudget, share: f64, calm: u64, requests: u64) -> usize {
        let arrivals = calm + 1..=calm + requests;
        arrivals.filter(|all| budget.take(share, *all)).count()
    }

    #[test]
    fn the_share_of_few_and_of_many_requests_is_shed() {
        for (share, requests, expected) in [
            (0.0, 1_000, 0),
            (0.25, 3, 0),
            (0.25, 4, 1),
            (0.25, 1_000, 250),
            (0.5, 7, 3),
            (0.75, 1_000, 750),
            (1.0, 7, 7),
        ] {
            let found = shed(&mut ShedBudget::default(), share, 0, requests);
            assert_eq!(found, expected, "{share} of {requests}");
        }
    }

    #[test]
    fn a_calm_time_saves_ten_requests() {
        for (calm, expected) in [(0, 20), (4, 22), (20, 29), (1_000_000, 29)] {
            let found = shed(&mut ShedBudget::default(), 0.5, calm, 40);
            assert_eq!(found, expected, "{calm}");
        }
    }

    #[test]
    fn a_changed_share_holds_at_once() {
        let mut budget = ShedBudget::default();
        assert_eq!(shed(&mut budget, 0.5, 100, 1), 1);
        assert_eq!(
            shed(&mut budget, 0.0, 101, 100),
            0,
            "although some are saved"
        );
        assert_eq!(shed(&mut budget, 1.0, 201, 100), 100);
    }

    #[test]
    fn a_count_that_starts_over_sheds_no_more() {
        let mut budget = ShedBudget::default();
        let before = u64::from(u32::MAX);
        assert_eq!(shed(&mut budget, 0.25, before - 8, 8), 8, "saved");
        assert_eq!(
            shed(&mut budget, 0.25, 0, 1),
            1,
            "the rest of what was saved"
        );
        assert!(shed(&mut budget, 0.25, 1, 400) <= 103);
    }
}
