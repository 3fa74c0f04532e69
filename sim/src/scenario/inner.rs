//! Services as clients of other services, and which services a request needs.

use std::collections::BTreeMap;

use super::{ClientProfile, Scenario, UpstreamProfile};

/// A service as a client of another one.
#[derive(Debug, Clone, PartialEq)]
pub struct InnerClient {
    /// The service that calls, by its index.
    pub service: usize,
    /// Which of its calls, by its index.
    pub call: usize,
    /// How it calls. Its `load` is empty, because the service's requests make the calls.
    pub profile: ClientProfile,
}

impl Scenario {
    /// A client by its index: those of the scenario, then the services that call others.
    #[must_use]
    pub fn client(&self, index: usize) -> Option<&ClientProfile> {
        match index.checked_sub(self.clients.len()) {
            None => self.clients.get(index),
            Some(inner) => self.inner.get(inner).map(|client| &client.profile),
        }
    }

    /// Whether services call services.
    #[must_use]
    pub fn has_chains(&self) -> bool {
        self.upstreams.iter().any(|one| !one.calls.is_empty())
    }

    /// The clients that are services themselves.
    pub(super) fn inner_clients(&self) -> Vec<InnerClient> {
        let mut inner = Vec::new();
        for (service, profile) in self.upstreams.iter().enumerate() {
            for (call, made) in profile.calls.iter().enumerate() {
                inner.push(InnerClient {
                    service,
                    call,
                    profile: ClientProfile {
                        upstream: made.upstream.clone(),
                        deadline: made.deadline,
                        retries: made.retries,
                        tells_deadline: profile.passes.deadline,
                        ..ClientProfile::sending(Vec::new())
                    },
                });
            }
        }
        inner
    }

    /// How often one request to `entry` needs each service, on average and without retries. Optional calls are not needed.
    #[must_use]
    pub fn visits(&self, entry: &str) -> BTreeMap<&str, f64> {
        let mut visits = BTreeMap::new();
        self.add_visits(entry, 1.0, &mut visits);
        visits
    }

    // Ends, because a valid scenario has no cycles.
    fn add_visits<'a>(&'a self, name: &str, share: f64, visits: &mut BTreeMap<&'a str, f64>) {
        let Some(profile) = self.upstream(name) else {
            return;
        };
        *visits.entry(profile.name.as_str()).or_default() += share;
        for call in profile.calls.iter().filter(|call| !call.optional) {
            self.add_visits(&call.upstream, share * call.share, visits);
        }
    }

    /// What is wrong with the calls of a service, as `path: what is wrong`.
    pub(super) fn faults_of_calls(&self, path: &str, profile: &UpstreamProfile) -> Vec<String> {
        let mut faults = Vec::new();
        for (index, call) in profile.calls.iter().enumerate() {
            let path = format!("{path}.calls[{index}]");
            if self.upstream(&call.upstream).is_none() {
                faults.push(format!(
                    "{path}.upstream: found {}, expected the name of an upstream",
                    call.upstream
                ));
            } else if self.reaches(&call.upstream, &profile.name, self.upstreams.len()) {
                faults.push(format!(
                    "{path}.upstream: found {}, which calls {} in turn, expected no circle",
                    call.upstream, profile.name
                ));
            }
            if !(0.0..=1.0).contains(&call.share) {
                faults.push(format!(
                    "{path}.share: found {}, expected a number in 0..=1",
                    call.share
                ));
            }
            if call.deadline.is_zero() {
                faults.push(format!("{path}.deadline: found 0, expected > 0"));
            }
        }
        faults
    }

    /// Whether requests of `from` may reach `to` over at most `hops` calls.
    fn reaches(&self, from: &str, to: &str, hops: usize) -> bool {
        let Some(profile) = self.upstream(from) else {
            return false;
        };
        from == to
            || hops > 0
                && profile
                    .calls
                    .iter()
                    .any(|call| self.reaches(&call.upstream, to, hops - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIAMOND: &str = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n\
        [[clients]]\nupstream='a'\nload=[{at='0s', rps=10.0}]\n\
        [[upstreams]]\nname='a'\ncalls=[{upstream='b'}, {upstream='c', share=0.5, step=1}]\n\
        [[upstreams]]\nname='b'\ncalls=[{upstream='d'}]\n\
        [[upstreams]]\nname='c'\ncalls=[{upstream='d', share=0.5}]\n\
        [[upstreams]]\nname='d'\n";

    #[test]
    fn visits_add_up_over_all_ways() {
        let scenario = Scenario::parse(DIAMOND, "test").unwrap();
        let visits = scenario.visits("a");
        for (name, expected) in [("a", 1.0), ("c", 0.5), ("d", 1.25)] {
            assert!((visits[name] - expected).abs() < 1e-12, "{name}");
        }
        assert_eq!(scenario.visits("b").get("a"), None);
        let text = DIAMOND.replace("{upstream='c'", "{upstream='c', optional=true");
        let optional = Scenario::parse(&text, "test").unwrap();
        assert_eq!(
            optional.visits("a").get("c"),
            None,
            "requests succeed without it"
        );
        assert!((optional.visits("a")["d"] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn services_that_call_are_clients() {
        let scenario = Scenario::parse(DIAMOND, "test").unwrap();
        let upstreams = (1..6).map(|index| scenario.client(index).map(|one| one.upstream.as_str()));
        let upstreams: Vec<_> = upstreams.collect();
        assert_eq!(
            upstreams,
            [Some("b"), Some("c"), Some("d"), Some("d"), None]
        );
    }

    #[test]
    fn circles_and_unknown_services_are_rejected() {
        let text = DIAMOND.replace("name='d'\n", "name='d'\ncalls=[{upstream='a'}]\n");
        let error = Scenario::parse(&text, "test").unwrap_err().to_string();
        assert!(
            error.contains("upstreams[3].calls[0].upstream: found a, which calls d in turn"),
            "{error}"
        );
        let text = DIAMOND.replace(
            "name='d'\n",
            "name='d'\ncalls=[{upstream='e', share=2.0, deadline='0s'}]\n",
        );
        let error = Scenario::parse(&text, "test").unwrap_err().to_string();
        for expected in [
            "calls[0].upstream: found e",
            "calls[0].share: found 2",
            "calls[0].deadline",
        ] {
            assert!(error.contains(expected), "{error}");
        }
    }
}
