//! The oracle of services that call services: it sheds at the entry what the bottleneck cannot serve.
//!
//! Each service alone judges all requests that reach it, as if it were called as soon as the caller's request arrives, with
//! the whole objective to spend. The service with the fewest good answers is the bottleneck, and its verdicts are the
//! oracle's. So the oracle is a bound: no entry limit can get more good answers, and a chain may get fewer. It ignores the
//! time and the slots that a service spends waiting for others.
//!
//! A service that a part of the requests reaches judges that part: every second request for a share of one half. Several visits
//! of one request count as one that works as long as all of them. A service that requests can do without is not a bottleneck.

use crate::arrivals::Arrival;
use crate::profile::ServiceTime;
use crate::scenario::{Scenario, UpstreamProfile};

use super::request::OracleRequest;
use super::server::Server;
use super::verdict::OracleVerdict;

/// Judges every arrival; the verdicts are in the order of `arrivals`.
pub(super) fn judge(scenario: &Scenario, arrivals: &[Arrival]) -> Vec<OracleVerdict> {
    let services = scenario.upstreams.iter();
    let judged = services.map(|profile| judge_alone(scenario, &profile.name, arrivals));
    let total = |verdicts: &[OracleVerdict]| verdicts.iter().map(|one| one.good).sum::<f64>();
    judged
        .min_by(|a, b| total(a).total_cmp(&total(b)))
        .unwrap_or_default()
}

/// What one service can do for the requests, if no other service were a bottleneck.
fn judge_alone(scenario: &Scenario, name: &str, arrivals: &[Arrival]) -> Vec<OracleVerdict> {
    let visits: Vec<f64> = scenario
        .clients
        .iter()
        .map(|client| scenario.visits(&client.upstream).get(name).copied())
        .map(Option::unwrap_or_default)
        .collect();
    let most = visits.iter().copied().fold(1.0, f64::max);
    // Sum of visits of each client's requests, in units of `most`; a request is judged when the sum reaches 1.
    let mut due = vec![0.0_f64; visits.len()];
    let mut server = scenario
        .upstream(name)
        .map(|profile| Server::new(&working(profile, most), scenario));
    let judge = |arrival: &Arrival| {
        let (Some(client), Some(server)) = (scenario.clients.get(arrival.client), server.as_mut())
        else {
            return OracleVerdict::NOTHING;
        };
        let visits = visits.get(arrival.client).copied().unwrap_or_default();
        let Some(due) = due.get_mut(arrival.client) else {
            return OracleVerdict::NOTHING;
        };
        *due += visits / most;
        if *due < 1.0 {
            return OracleVerdict {
                admitted: true,
                good: 1.0,
                ..OracleVerdict::NOTHING
            };
        }
        *due -= 1.0;
        let request = OracleRequest {
            at: arrival.at,
            arrival,
            client,
        };
        server.judge(&request, None)
    };
    arrivals.iter().map(judge).collect()
}

/// The service with all service times multiplied by `factor`.
fn working(profile: &UpstreamProfile, factor: f64) -> UpstreamProfile {
    let mut profile = profile.clone();
    let longer = |law: &mut ServiceTime| *law = law.times(factor);
    longer(&mut profile.behaviour.service);
    profile.behaviour.paths.values_mut().for_each(longer);
    let own = profile.exceptions.iter_mut();
    let changes = own.flat_map(|exception| &mut exception.timeline);
    let changes = profile.timeline.iter_mut().chain(changes);
    changes
        .filter_map(|change| change.change.service.as_mut())
        .for_each(longer);
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::schedule;

    fn good(calls: &str) -> (f64, f64) {
        // `a` has room for all; `b` serves 50 a second.
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='10s'\n\
             [[clients]]\nupstream='a'\nload=[{{at='0s', rps=100.0}}]\n\
             [[upstreams]]\nname='a'\nbehaviour={{slots=500}}\ncalls=[{calls}]\n\
             [[upstreams]]\nname='b'\nbehaviour={{slots=1, service={{kind='constant', mean='20ms'}}}}\n"
        );
        let scenario = Scenario::parse(&text, "test").unwrap();
        let arrivals = schedule(&scenario);
        let verdicts = judge(&scenario, &arrivals);
        let admitted = verdicts.iter().filter(|one| one.admitted).count();
        let all = crate::number::float_len(arrivals.len());
        let good: f64 = verdicts.iter().map(|one| one.good).sum();
        (good / all, crate::number::float_len(admitted) / all)
    }

    #[test]
    fn the_entry_admits_what_the_bottleneck_serves() {
        for (calls, expected) in [
            ("{upstream='b'}", 0.5),
            ("{upstream='b', share=0.5}", 1.0),
            ("{upstream='b'}, {upstream='b', step=1}", 0.25),
        ] {
            let (good, admitted) = good(calls);
            assert!((good - expected).abs() < 0.06, "{calls}: {good}");
            assert!(admitted >= good, "{calls}: {admitted}");
        }
    }
}
