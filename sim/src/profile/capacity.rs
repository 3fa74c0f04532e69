//! What an upstream can serve at best.

use super::Behaviour;

impl Behaviour {
    /// Slots of all endpoints together.
    #[must_use]
    pub fn all_slots(&self) -> f64 {
        f64::from(self.slots) * f64::from(self.endpoints)
    }

    /// Requests a second that all slots together serve, for the plain service time and body.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        let held = self.body.map_or(0.0, |body| body.held());
        let body = self
            .body
            .map_or(0.0, |body| body.duration.mean().as_secs_f64());
        self.throughput(self.service.mean().as_secs_f64(), held, body)
    }

    /// Requests a second at the best concurrency, pauses included. The arguments are means in seconds: of the service time,
    /// of the part of the body that holds the slot, and of the whole body, which takes a connection.
    #[must_use]
    pub fn throughput(&self, service: f64, held: f64, body: f64) -> f64 {
        let slots = self.best_concurrency(service, held);
        let endpoints = f64::from(self.endpoints);
        let by_slots = slots * endpoints / (service * self.slowdown(slots) + held);
        let by_connections = self.connections.map_or(f64::INFINITY, |connections| {
            f64::from(connections.max) * endpoints / (service + body)
        });
        by_slots.min(by_connections) * self.running_share()
    }

    /// The number of requests in slots of one endpoint at which it serves the most, at least 1.
    #[must_use]
    pub fn best_concurrency(&self, service: f64, held: f64) -> f64 {
        let most = self
            .connections
            .map_or(self.slots, |connections| self.slots.min(connections.max));
        let Some(contention) = self.contention else {
            return f64::from(most);
        };
        let rate = |slots: f64| slots / (service * contention.factor(slots) + held);
        // Above the bound the rate either grows on or falls, so the best is at one of the two ends.
        let (free, all) = (
            f64::from(contention.above.clamp(1, most.max(1))),
            f64::from(most),
        );
        if rate(free) >= rate(all) { free } else { all }
    }

    /// How many times as long service takes with `busy` requests in slots of an endpoint.
    #[must_use]
    pub fn slowdown(&self, busy: f64) -> f64 {
        self.contention
            .map_or(1.0, |contention| contention.factor(busy))
    }

    /// Share of time in which an endpoint runs.
    #[must_use]
    pub fn running_share(&self) -> f64 {
        self.pauses.map_or(1.0, |pauses| pauses.running_share())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::profile::{Body, Connections, Contention, Pauses, ServiceTime};

    fn body(holds_slot: bool) -> Option<Body> {
        Some(Body {
            duration: ServiceTime::constant(Duration::from_secs(1)),
            holds_slot,
            bytes: 0,
        })
    }

    fn capacity(change: impl FnOnce(&mut Behaviour)) -> f64 {
        let mut behaviour = Behaviour::default();
        change(&mut behaviour);
        behaviour.capacity()
    }

    #[test]
    fn a_body_counts_where_it_holds_the_slot() {
        assert!((capacity(|b| b.body = body(false)) - 400.0).abs() < 1e-9);
        // 16 slots, each held for 1.04 s.
        let held = capacity(|b| b.body = body(true));
        assert!((held - 16.0 / 1.04).abs() < 1e-9, "{held}");
    }

    #[test]
    fn contention_leaves_the_best_concurrency() {
        let contended = |slope| {
            capacity(|b| {
                b.slots = 64;
                b.contention = Some(Contention { above: 16, slope });
            })
        };
        assert!((contended(0.25) - 400.0).abs() < 1e-9, "16 at a time");
        // With a slope below 1/16, more at a time still serves more: 64 / (40 ms x 1.48).
        assert!((contended(0.01) - 64.0 / 0.0592).abs() < 1e-6);
    }

    #[test]
    fn pauses_take_their_share_of_time() {
        let paused = capacity(|b| {
            b.pauses = Some(Pauses {
                every: Duration::from_secs(2),
                length: Duration::from_millis(500),
                together: false,
            });
        });
        assert!((paused - 300.0).abs() < 1e-9, "{paused}");
    }

    #[test]
    fn connections_bound_slots_and_bodies() {
        let limited = |max, body| {
            capacity(|b| {
                b.connections = Some(Connections { max, backlog: 8 });
                b.body = body;
            })
        };
        assert!((limited(8, None) - 200.0).abs() < 1e-9);
        // 104 connections, each taken for 1.04 s, though slots would serve 400 a second.
        assert!((limited(104, body(false)) - 100.0).abs() < 1e-9);
    }
}
