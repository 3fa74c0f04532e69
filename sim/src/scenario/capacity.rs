//! What the upstream of a client serves of its requests.

use std::time::Duration;

use super::{ClientProfile, Scenario};
use crate::profile::Behaviour;

impl Scenario {
    /// Requests a second that the upstream of `client` serves at the start, for the paths this client asks for: at
    /// the best concurrency, with the bodies that hold a slot, for as long as this client reads them, and for the share
    /// of time without pauses. A path that fails counts as if it did not.
    #[must_use]
    pub fn capacity_for(&self, client: &ClientProfile) -> f64 {
        let Some(profile) = self.upstream(&client.upstream) else {
            return 0.0;
        };
        client.capacity_of(&profile.behaviour)
    }
}

impl ClientProfile {
    /// Requests a second that an upstream which behaves like this serves, for the paths that this client asks for.
    #[must_use]
    pub fn capacity_of(&self, behaviour: &Behaviour) -> f64 {
        let most = self.reads_for.map_or(Duration::MAX, |law| law.mean());
        let body = |path: &str| {
            let body = behaviour.body_for(path);
            let dawdles = self.dawdles.map_or(0.0, |time| time.as_secs_f64());
            body.map_or(0.0, |body| body.duration.mean_within(most).max(dawdles))
        };
        let held = |path: &str| {
            let body_holds = behaviour.body_for(path).is_some_and(|body| body.holds_slot);
            if body_holds { body(path) } else { 0.0 }
        };
        // An upload takes a connection as well.
        let upload = self
            .upload
            .map_or(0.0, |upload| upload.duration.mean().as_secs_f64());
        let service = |path: &str| behaviour.service_for(path).mean().as_secs_f64();
        if self.paths.is_empty() {
            return behaviour.throughput(service("/"), held("/"), upload + body("/"));
        }
        let weight: f64 = self.paths.values().sum();
        let mean = |time: &dyn Fn(&str) -> f64| -> f64 {
            let paths = self.paths.iter();
            paths.map(|(path, share)| time(path) * share / weight).sum()
        };
        behaviour.throughput(mean(&service), mean(&held), upload + mean(&body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_of_paths_weighs_service_and_bodies() {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n\
            [[clients]]\nload=[{at='0s', x=0.5}]\npaths={'/'=0.75, '/stream'=0.25}\n\
            [[upstreams]]\nname='main'\n[upstreams.behaviour.bodies]\n\
            '/stream'={duration={kind='constant', mean='4s'}, holds_slot=true}";
        let scenario = Scenario::parse(text, "test").unwrap();
        let found = scenario.capacity_for(&scenario.clients[0]);
        // 16 slots; 40 ms for each, and 4 s for a quarter.
        assert!((found - 16.0 / 1.04).abs() < 1e-9, "{found}");
    }
}
