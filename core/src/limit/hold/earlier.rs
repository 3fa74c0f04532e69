//! How many requests in flight were admitted before the last step of the limit.
//!
//! They waited in the queue of another limit, so their answers do not tell whether this one makes answers late. Requests end about
//! in the order in which they were admitted:
//!
//! ```text
//!   Uncounted --the first window ends, with n in flight--> Left(n) --n requests end--> Gone
//! ```

use crate::sample::Sample;
use crate::tally::Count;

/// The requests from before the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Earlier {
    /// No window has ended since the step.
    Uncounted,
    /// So many are left.
    Left(f64),
    /// All have ended.
    Gone,
}

impl Earlier {
    /// What is left after one more window.
    pub(super) fn after(self, window: &Sample) -> Self {
        let left = match self {
            Self::Uncounted => f64::from(window.in_flight),
            Self::Left(left) => left - ended(window),
            Self::Gone => 0.0,
        };
        if left > 0.0 {
            Self::Left(left)
        } else {
            Self::Gone
        }
    }
}

/// Requests that ended in the window: with an answer, a failure, or because the caller left.
fn ended(window: &Sample) -> f64 {
    [Count::Answers, Count::Failures, Count::Cancelled]
        .into_iter()
        .map(|count| window.count(count))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::Earlier::{Gone, Left, Uncounted};
    use crate::limit::testing::window;
    use crate::tally::Count;

    /// Before a window with 15 answers, requests in flight at its end, and what is left after it.
    #[test]
    fn as_many_requests_end_as_were_in_flight() {
        for (before, in_flight, expected) in [
            (Uncounted, 40, Left(40.0)),
            (Uncounted, 0, Gone),
            (Left(40.0), 90, Left(25.0)),
            (Left(16.0), 90, Left(1.0)),
            (Left(15.0), 90, Gone),
            (Left(3.0), 0, Gone),
            (Gone, 90, Gone),
        ] {
            let window = window(1_000, 15, 100).holding(in_flight);
            assert_eq!(before.after(&window), expected, "{before:?} {in_flight}");
        }
    }

    #[test]
    fn a_request_ends_without_an_answer_too() {
        let mut window = window(1_000, 1, 100).holding(9);
        window.tally.add(Count::Failures, 2);
        window.tally.add(Count::Cancelled, 3);
        assert_eq!(Left(10.0).after(&window), Left(4.0));
    }
}
