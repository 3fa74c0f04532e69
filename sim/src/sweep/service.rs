//! A service of any size and pace, and its objective.

use std::time::Duration;

use super::rounded;
use super::spread::ProxySpread;
use super::uniform::Uniform;
use crate::number;
use crate::profile::{Behaviour, ServiceTime};
use crate::scenario::Scenario;

/// Capacity of services, requests a second: with less a minute shows nothing, and more takes long to play.
const CAPACITY: std::ops::RangeInclusive<f64> = 20.0..=6_000.0;
/// The 99th percentile of a normal distribution, in standard deviations above the mean.
const NORMAL_P99: f64 = 2.326;
/// The tightest objective, ms.
const LEAST_OBJECTIVE_MS: f64 = 20.0;

/// A service and its objective.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DrawnService {
    /// How each endpoint behaves at the start.
    pub(super) behaviour: Behaviour,
    /// The objective: an answer later than this is not a good answer.
    pub(super) objective: Duration,
    /// When callers give up.
    pub(super) deadline: Duration,
}

impl DrawnService {
    /// Draws one, and spreads its slots over endpoints.
    pub(super) fn drawn(uniform: &mut Uniform, spread: ProxySpread) -> Self {
        let (slots, mean_ms) = size(uniform);
        let mean = rounded::micros(mean_ms * 1_000.0);
        let (service, p99_ms) = if uniform.one_of(false, &[true, true, true]) {
            let sigma = rounded::hundredths(uniform.between(0.2, 1.1));
            let above_mean = libm::exp(NORMAL_P99 * sigma - sigma * sigma / 2.0);
            (ServiceTime::Lognormal { mean, sigma }, mean_ms * above_mean)
        } else {
            (ServiceTime::constant(mean), mean_ms)
        };
        let objective = rounded::millis((p99_ms * uniform.scale(1.5, 6.0)).max(LEAST_OBJECTIVE_MS));
        let deadline = rounded::millis(number::millis(objective) * uniform.between(1.5, 5.0));
        Self {
            behaviour: Behaviour {
                endpoints: spread.endpoints,
                slots: (slots / spread.endpoints.max(1)).max(1),
                service,
                ..Behaviour::default()
            },
            objective,
            deadline,
        }
    }

    /// In a few words.
    pub(super) fn words(&self) -> String {
        let Behaviour {
            endpoints,
            slots,
            service,
            ..
        } = &self.behaviour;
        let slots = match endpoints {
            1 => format!("{slots} slots"),
            _ => format!("{endpoints} x {slots} slots"),
        };
        let spread = match service {
            ServiceTime::Lognormal { sigma, .. } => format!("sigma {sigma}"),
            _ => "constant".to_owned(),
        };
        format!(
            "{slots}, {:.1} ms ({spread}), {:.0}/s, objective {} ms, deadline {} ms",
            number::millis(service.mean()),
            self.behaviour.capacity(),
            self.objective.as_millis(),
            self.deadline.as_millis()
        )
    }
}

/// Slots and mean service time, ms.
fn size(uniform: &mut Uniform) -> (u32, f64) {
    loop {
        let slots = rounded::count(uniform.scale(2.0, 200.0));
        let mean_ms = uniform.scale(3.0, 400.0);
        if CAPACITY.contains(&(f64::from(slots) / mean_ms * 1_000.0)) {
            return (slots, mean_ms);
        }
    }
}

/// The same law with all times multiplied by `factor`; drawn laws are log-normal or constant.
pub(super) fn slower(law: &ServiceTime, factor: f64) -> ServiceTime {
    let mean = rounded::micros(law.mean().as_secs_f64() * 1e6 * factor);
    match *law {
        ServiceTime::Lognormal { sigma, .. } => ServiceTime::Lognormal { mean, sigma },
        _ => ServiceTime::constant(mean),
    }
}

/// The service behind a story.
pub(super) fn behaviour(story: &mut Scenario) -> Option<&mut Behaviour> {
    story
        .upstreams
        .first_mut()
        .map(|profile| &mut profile.behaviour)
}

/// A log-normal time.
pub(super) fn lognormal(uniform: &mut Uniform, mean: Duration, spread: (f64, f64)) -> ServiceTime {
    let sigma = rounded::hundredths(uniform.between(spread.0, spread.1));
    ServiceTime::Lognormal { mean, sigma }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProxySpread = ProxySpread {
        proxies: 1,
        workers: 1,
        endpoints: 1,
    };

    #[test]
    fn services_are_within_their_bounds() {
        for number in 0..300 {
            let service = DrawnService::drawn(&mut Uniform::of(1, number), ONE);
            let capacity = service.behaviour.capacity();
            // Service times are rounded after the bound was applied.
            assert!((19.9..6_010.0).contains(&capacity), "{capacity}");
            assert!(service.objective >= Duration::from_millis(20));
            assert!(service.deadline > service.objective);
            let late = service.behaviour.service.share_above(service.objective);
            assert!(late < 0.01, "{late} are late without any load");
        }
    }

    #[test]
    fn endpoints_share_the_slots() {
        let many = ProxySpread {
            proxies: 1,
            workers: 1,
            endpoints: 8,
        };
        let whole = DrawnService::drawn(&mut Uniform::of(1, 3), ONE).behaviour;
        let parts = DrawnService::drawn(&mut Uniform::of(1, 3), many).behaviour;
        assert_eq!(parts.slots, (whole.slots / 8).max(1));
        assert_eq!(parts.service, whole.service);
    }

    #[test]
    fn slower_is_another_mean() {
        let law = ServiceTime::constant(Duration::from_micros(1_500));
        assert_eq!(slower(&law, 2.0).mean(), Duration::from_millis(3));
    }
}
