//! Wasted work: slot time that services spend for requests whose caller gets no answer 200.
//!
//! The work of a request at a service is the service time that it draws when it gets a slot. Waiting for a slot, or for the
//! answers of other services, is not work. A call that a service makes belongs to the request from outside that caused it,
//! and is of use if that request gets an answer 200 in the end. So the work of an attempt that fails is of use if a retry
//! succeeds, and the work of an optional call that fails is of use if the request succeeds without it.

use std::collections::BTreeMap;
use std::time::Duration;

/// Work in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct ServiceWork {
    all: f64,
    wasted: f64,
}

/// The work of all services in a run.
#[derive(Debug, Clone, Default)]
pub struct WorkLedger(BTreeMap<String, ServiceWork>);

impl WorkLedger {
    /// Adds the work of one request at `service`; `is_of_use` if the caller outside got an answer 200.
    pub fn add(&mut self, service: &str, work: Duration, is_of_use: bool) {
        if work.is_zero() {
            return;
        }
        let seconds = work.as_secs_f64();
        let wasted = if is_of_use { 0.0 } else { seconds };
        // A name is copied only once.
        if let Some(sum) = self.0.get_mut(service) {
            sum.all += seconds;
            sum.wasted += wasted;
        } else {
            let all = seconds;
            self.0
                .insert(service.to_owned(), ServiceWork { all, wasted });
        }
    }

    /// The wasted share of the work of all services, 0 to 1; none if none has worked.
    #[must_use]
    pub fn wasted(&self) -> Option<f64> {
        let (all, wasted) = self.0.values().fold((0.0, 0.0), |(all, wasted), work| {
            (all + work.all, wasted + work.wasted)
        });
        (all > 0.0).then(|| wasted / all)
    }

    /// The wasted share of each service's own work, 0 to 1; a service that has not worked is not in it.
    #[must_use]
    pub fn wasted_by_service(&self) -> BTreeMap<String, f64> {
        let share = |(name, work): (&String, &ServiceWork)| (name.clone(), work.wasted / work.all);
        self.0.iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_summed_over_services_and_told_by_service() {
        let mut work = WorkLedger::default();
        work.add("entry", Duration::from_millis(100), true);
        work.add("entry", Duration::from_millis(100), false);
        work.add("last", Duration::from_millis(600), false);
        work.add("idle", Duration::ZERO, false);
        assert!((work.wasted().unwrap() - 0.875).abs() < 1e-9);
        let by_service: Vec<_> = work.wasted_by_service().into_iter().collect();
        assert_eq!(by_service.len(), 2, "{by_service:?}");
        assert!(by_service[0].0 == "entry" && (by_service[0].1 - 0.5).abs() < 1e-9);
        assert!(by_service[1].0 == "last" && (by_service[1].1 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_wasted_or_useful_where_nobody_works() {
        assert_eq!(WorkLedger::default().wasted(), None);
    }
}
