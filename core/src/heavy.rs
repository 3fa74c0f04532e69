//! Cohorts that ask for a large part of everything.
//!
//! Cohorts are served or shed as a whole, so that a caller gets through a page of ten requests or through none of it. Where one
//! cohort is a large part of the demand, that is unfair: it is served whole and pushes out many others, or it gets nothing
//! at all. Its requests are shed one by one instead, as often as those of all others.
//!
//! What is frequent is found with a few counters (Misra and Gries, "Finding repeated elements", Science of Computer Programming
//! 2(2), 1982). They never count a cohort more often than it came.

/// Cohorts that are counted at a time.
const PLACES: usize = 16;
/// A cohort with one in this many requests is heavy.
const HEAVY: u32 = 16;
/// With fewer requests no cohort is heavy.
const ENOUGH: u32 = 32;
/// After this many requests, older ones lose half of their weight.
const MEMORY: u32 = 256;
/// The golden ratio of 2^32: its multiples are spread evenly.
const STEP: u32 = 0x9E37_79B9;

/// How often cohorts came lately, as far as that is much.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeavyCohorts {
    /// A cohort, and how often it came at the least. Most upstreams never ask for a cohort, and need no room for it.
    places: Option<Box<[(u32, u32); PLACES]>>,
    total: u32,
    /// Where the last request of a heavy cohort stood.
    turn: u32,
}

impl HeavyCohorts {
    /// The position of a request in the order in which cohorts are served: that of its cohort, or any if the cohort is heavy.
    pub(crate) fn place(&mut self, cohort: u32) -> u32 {
        if self.count(cohort) * HEAVY < self.total || self.total < ENOUGH {
            return cohort;
        }
        self.turn = self.turn.wrapping_add(STEP);
        self.turn
    }

    /// Counts one request; answers how often its cohort came at the least.
    fn count(&mut self, cohort: u32) -> u32 {
        let places = self.places.get_or_insert_default();
        if self.total >= MEMORY {
            self.total /= 2;
            places.iter_mut().for_each(|(_, count)| *count /= 2);
        }
        self.total += 1;
        let is_its = |(other, count): &&mut (u32, u32)| *other == cohort && *count > 0;
        if let Some((_, count)) = places.iter_mut().find(is_its) {
            *count += 1;
            return *count;
        }
        if let Some(place) = places.iter_mut().find(|(_, count)| *count == 0) {
            *place = (cohort, 1);
            return 1;
        }
        places.iter_mut().for_each(|(_, count)| *count -= 1);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which share of the requests of cohort 1 is in the lower half, where every `nth` request is of it and all others are
    /// of cohorts of their own.
    fn share_below_half(nth: u32) -> f64 {
        let mut heavy = HeavyCohorts::default();
        let mut places = Vec::new();
        for request in 0..20_000_u32 {
            if request % nth == 0 {
                places.push(heavy.place(1));
            } else {
                let other = request.wrapping_mul(STEP) | 2;
                assert_eq!(heavy.place(other), other, "no other one moves");
            }
        }
        let below = places.iter().filter(|place| **place <= u32::MAX / 2);
        f64::from(u32::try_from(below.count()).unwrap())
            / f64::from(u32::try_from(places.len()).unwrap())
    }

    #[test]
    fn a_cohort_that_is_a_large_part_of_all_is_shed_request_by_request() {
        for (nth, expected) in [(2, 0.5), (4, 0.5), (50, 1.0)] {
            let share = share_below_half(nth);
            assert!((share - expected).abs() < 0.02, "1 in {nth}: {share}");
        }
    }

    #[test]
    fn a_few_requests_make_no_cohort_heavy() {
        let mut heavy = HeavyCohorts::default();
        for _ in 1..ENOUGH {
            assert_eq!(heavy.place(7), 7);
        }
        assert_ne!(heavy.place(7), 7);
    }

    #[test]
    fn heavy_cohorts_are_forgotten() {
        let mut heavy = HeavyCohorts::default();
        (0..200).for_each(|_| {
            heavy.place(7);
        });
        for other in 0..2_000_u32 {
            heavy.place(other.wrapping_mul(STEP) | 8);
        }
        assert_eq!(heavy.place(7), 7);
    }
}
