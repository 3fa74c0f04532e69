//! Prices and tokens like Rajomon's: a market from the callers to the last service of a chain.
//!
//! Each request carries tokens, and each service asks a price. The price of a service rises while requests wait for it. It
//! goes back with responses, so that each service knows what those behind it ask. A service refuses requests with fewer
//! tokens than the greatest of its own price and those that it knows: the entry sheds what the last service would shed.
//!
//! Formula, every 5 ms: `change = (w - threshold) x 180 / 10 ms`, where `w` is the longest wait of requests whose work began
//! since, and the price is never below 0. From the third increase in a row on, the increase is multiplied with `0.8^n`, where
//! n counts the increases before it. A price goes back with responses, that of a refusal as well.
//!
//! Source: J. Xing et al., "Rajomon: Decentralized and Coordinated Overload Control for Latency-Sensitive Microservices",
//! NSDI 2025, <https://www.usenix.org/conference/nsdi25/presentation/xing>; the authors' <https://github.com/pennsail/rajomon>:
//! method `expdecay`, 5 ms and step 180 as in its tests, decay 0.8 and the maximum as aggregation, its defaults, and
//! tokens drawn equally likely, its strategy `uniform`.
//!
//! Edges: Rajomon sits in servers and their clients. Here the proxy in front of a service does the work of both:
//! [`WorkBegun`] reports how long requests waited, and responses bring the prices of the services that its own service
//! calls. With several proxies, each sees only its own responses. Each request has a caller of its own, so no caller saves
//! up tokens or waits for more. The number of tokens follows from the caller's hash, and all calls for a request carry as
//! many.
//!
//! Three settings differ from the code, which has to be tuned for each application. They were chosen from some hundred sets
//! on the same chain scenarios that then score them, so the figures there are an upper bound: a threshold of 20 ms instead
//! of 500 us (there a Go program's wait for a processor, here the wait for a slot); a price with each response, not with one
//! in five; and up to [`TOKENS`] for a critical request, each class having twice as many as the one below. A price is at
//! most 99 % of that: if no request could pay it, no response would show that it has fallen, while clients of Rajomon save
//! until they can pay.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::{Criticality, Instant};

use crate::contender::{
    Admission, Ask, Contender, ContenderView, Done, Made, RequestId, WorkBegun,
};
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "rajomon",
    title: "Prices from service to service (Rajomon)",
    make: Make::Inside(make),
};

/// Interval between two changes of a price.
const CHANGE_EVERY: Duration = Duration::from_millis(5);
/// Waits up to this are not overload.
const THRESHOLD_US: i64 = 20_000;
/// Tokens for each `STEP_WAIT_US` of wait above the threshold.
const STEP: i64 = 180;
const STEP_WAIT_US: i64 = 10_000;
/// Factor for each further increase in a row.
const DECAY: f64 = 0.8;
/// Increases in a row before they become smaller.
const FULL_INCREASES: u32 = 2;
/// Tokens of a critical request are below this.
const TOKENS: u64 = 1_000;
/// No price is above this.
const MAX_PRICE: i64 = 990;

fn make(scenario: &Scenario, _seed: u64) -> Made {
    let services = scenario.upstreams.iter().map(|_| PricedService::default());
    Ok(Box::new(Rajomon {
        services: services.collect(),
        in_flight: BTreeMap::new(),
    }))
}

/// What a service asks, and what it knows of those that it calls.
#[derive(Debug, Default)]
struct PricedService {
    own: i64,
    /// Increases in a row.
    increases: u32,
    /// `DECAY` to the power of `increases`.
    decay: f64,
    /// Longest wait of requests whose work began since the last change.
    longest_wait: Duration,
    /// Last price received from each service that it calls.
    of_others: BTreeMap<usize, i64>,
}

impl PricedService {
    /// The tokens that a request must carry.
    fn price(&self) -> i64 {
        let of_others = self.of_others.values().copied().max();
        of_others.unwrap_or(0).max(self.own)
    }

    fn change(&mut self) {
        let waited = std::mem::take(&mut self.longest_wait).as_micros();
        let waited = i64::try_from(waited).unwrap_or(i64::MAX / STEP);
        let change = (waited - THRESHOLD_US) * STEP / STEP_WAIT_US;
        let change = self.damped(change);
        self.own = (self.own + change).clamp(0, MAX_PRICE);
    }

    /// `change`, damped by the increases in a row before it.
    fn damped(&mut self, change: i64) -> i64 {
        if change < 0 {
            self.increases = 0;
        }
        if change <= 0 {
            return change;
        }
        if self.increases == 0 {
            self.decay = 1.0;
        }
        let damped = if self.increases < FULL_INCREASES {
            change
        } else {
            let increase = number::float(change.unsigned_abs()) * self.decay;
            i64::try_from(number::floor(increase)).unwrap_or(change)
        };
        self.increases = self.increases.saturating_add(1);
        self.decay *= DECAY;
        damped
    }
}

/// An admitted request whose response will carry a price.
#[derive(Debug, Clone, Copy)]
struct PriceOnTheWay {
    /// The service that receives it.
    service: usize,
    price: i64,
}

struct Rajomon {
    services: Vec<PricedService>,
    in_flight: BTreeMap<RequestId, PriceOnTheWay>,
}

/// The tokens of a request: the same for all calls that are made for it.
fn tokens(criticality: Criticality, cohort: u64) -> u64 {
    let most = match criticality {
        Criticality::Sheddable => TOKENS / 4,
        Criticality::SheddablePlus => TOKENS / 2,
        Criticality::Critical => TOKENS,
        Criticality::CriticalPlus => TOKENS * 2,
    };
    cohort % most
}

impl Rajomon {
    fn hear(&mut self, service: usize, upstream: usize, price: i64) {
        if let Some(service) = self.services.get_mut(service) {
            service.of_others.insert(upstream, price);
        }
    }
}

impl Contender for Rajomon {
    fn admit(&mut self, ask: &Ask<'_>, _now: Instant) -> Admission {
        let price = self.services.get(ask.upstream).map(PricedService::price);
        let price = price.unwrap_or(0);
        let tokens = tokens(ask.criticality, ask.cohort);
        let is_admitted = i64::try_from(tokens).unwrap_or(i64::MAX) >= price;
        match ask.service {
            Some(service) if is_admitted => {
                let on_the_way = PriceOnTheWay { service, price };
                self.in_flight.insert(ask.request, on_the_way);
            }
            Some(service) => self.hear(service, ask.upstream, price),
            None => {}
        }
        if is_admitted {
            Admission::Admit
        } else {
            Admission::shed("price")
        }
    }

    fn watches_work(&self) -> bool {
        true
    }

    fn begun(&mut self, begun: &WorkBegun, _now: Instant) {
        if let Some(service) = self.services.get_mut(begun.upstream) {
            service.longest_wait = service.longest_wait.max(begun.waited);
        }
    }

    fn complete(&mut self, done: &Done, _now: Instant) {
        let told = self.in_flight.remove(&done.request);
        if let Some(told) = told.filter(|_| done.is_answered) {
            self.hear(told.service, done.upstream, told.price);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(CHANGE_EVERY)
    }

    fn tick(&mut self, _now: Instant) {
        for service in &mut self.services {
            service.change();
        }
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Outcome;

    use super::super::trial::{at, done, first_ask};
    use super::*;

    fn two_services() -> Rajomon {
        Rajomon {
            services: vec![PricedService::default(), PricedService::default()],
            in_flight: BTreeMap::new(),
        }
    }

    /// A request whose work begins after `waited_ms`, and then a change of all prices.
    fn wait(rajomon: &mut Rajomon, upstream: usize, waited_ms: u64) {
        let begun = WorkBegun {
            upstream,
            waited: Duration::from_millis(waited_ms),
            work: Duration::ZERO,
            slots: 1,
        };
        rajomon.begun(&begun, at(0));
        rajomon.tick(at(5));
    }

    fn ask(upstream: usize, service: Option<usize>, tokens: u64) -> Ask<'static> {
        Ask {
            upstream,
            service,
            cohort: tokens,
            ..first_ask()
        }
    }

    #[test]
    fn price_follows_the_longest_wait_as_published() {
        let mut rajomon = two_services();
        // (30 - 20) x 180 / 10 = 180, twice; then x 0.64 and x 0.512, rounded down.
        for expected in [180, 360, 475, 567] {
            wait(&mut rajomon, 0, 30);
            assert_eq!(rajomon.services[0].own, expected);
        }
        // -20 x 180 / 10 = -360.
        rajomon.tick(at(10));
        assert_eq!(rajomon.services[0].own, 207);
        wait(&mut rajomon, 0, 30);
        assert_eq!(rajomon.services[0].own, 387, "a first increase again");
        wait(&mut rajomon, 0, 1_000);
        assert_eq!(rajomon.services[0].own, MAX_PRICE);
        assert_eq!(rajomon.services[1].own, 0, "never below 0");
    }

    #[test]
    fn a_price_goes_back_with_responses_and_the_entry_asks_the_greatest() {
        let mut rajomon = two_services();
        wait(&mut rajomon, 1, 30);
        let inner = rajomon.admit(&ask(1, Some(0), 500), at(0));
        assert_eq!(inner, Admission::Admit);
        assert_eq!(rajomon.services[0].price(), 0, "not heard yet");
        let end = Done {
            upstream: 1,
            ..done(Outcome::Success, 40)
        };
        rajomon.complete(&end, at(50));
        assert_eq!(rajomon.services[0].price(), 180);
        let poor = rajomon.admit(&ask(0, None, 179), at(51));
        assert_eq!(poor, Admission::shed("price"));
        assert_eq!(rajomon.admit(&ask(0, None, 180), at(51)), Admission::Admit);
    }

    #[test]
    fn a_refusal_tells_the_price_and_a_caller_that_goes_away_hears_none() {
        let mut rajomon = two_services();
        wait(&mut rajomon, 1, 30);
        rajomon.admit(&ask(1, Some(0), 500), at(0));
        let gone = Done {
            upstream: 1,
            ..done(Outcome::Cancelled, 40)
        };
        rajomon.complete(&gone, at(40));
        assert_eq!(rajomon.services[0].price(), 0);
        let refused = rajomon.admit(&ask(1, Some(0), 100), at(41));
        assert_eq!(refused, Admission::shed("price"));
        assert_eq!(rajomon.services[0].price(), 180);
    }

    #[test]
    fn important_requests_have_more_tokens() {
        let of = |class| tokens(class, 1_999);
        assert_eq!(of(Criticality::Sheddable), 249);
        assert_eq!(of(Criticality::SheddablePlus), 499);
        assert_eq!(of(Criticality::Critical), 999);
        assert_eq!(of(Criticality::CriticalPlus), 1_999);
    }
}
