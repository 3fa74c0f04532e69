//! When requests arrive.
//!
//! An open-loop client does not wait for answers before it sends the next
//! request, so its arrivals can be drawn before the run: the same seed gives the
//! same arrivals to every contender, and the oracle judges by the same list. Where there are too many for a list,
//! [`ArrivalStream`] draws one after the other.
//!
//! Clients in a closed loop have no arrivals here: theirs depend on the answers ([`crate::closed_loop`]).
//!
//! Poisson arrivals with a rate that changes over time come from time warping:
//! unit exponential gaps are laid along the integral of the rate.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;

use crate::number;
use crate::rng::{self, Generator, RngPurpose};
use crate::scenario::{Arrivals, ClientProfile, Scenario, Upload};

/// One request to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// When it is sent, from the start of the run.
    pub at: Duration,
    /// Index of the client in the scenario.
    pub client: usize,
    /// Path that is asked for.
    pub path: Cow<'static, str>,
    /// Value of the criticality header, if it is sent.
    pub criticality: Option<String>,
    /// The body of the request, the same in each attempt; none: the request is complete with its headers.
    pub upload: Option<Sending>,
    /// How long the caller reads the response before it closes the stream; none: it reads to the end.
    pub reads_for: Option<Duration>,
}

/// How the body of a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// Time from the headers to the last byte.
    Takes(Duration),
    /// It never ends.
    Stalls,
}

impl Arrival {
    /// Duration of the upload: zero without one, none if it never ends.
    #[must_use]
    pub const fn uploads_for(&self) -> Option<Duration> {
        match self.upload {
            None => Some(Duration::ZERO),
            Some(Sending::Takes(time)) => Some(time),
            Some(Sending::Stalls) => None,
        }
    }
}

/// The rate is taken as constant within steps of this length.
const STEP: Duration = Duration::from_millis(1);

/// All requests of a scenario in order of time, without those of closed loops; the same seed gives the same list.
#[must_use]
pub fn schedule(scenario: &Scenario) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for (index, client) in scenario.clients.iter().enumerate() {
        let stream = u32::try_from(index).unwrap_or(u32::MAX);
        let mut rng = rng::generator(scenario.seed, RngPurpose::Arrivals(stream));
        // A separate random stream: a change in what callers do does not change their arrival times.
        let mut conduct = rng::generator(scenario.seed, RngPurpose::Conduct(stream));
        let times: Vec<Duration> = ArrivalTimes::new(scenario, client, &mut rng).collect();
        for at in times {
            arrivals.push(arrival(at, index, client, &mut rng, &mut conduct));
        }
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

/// Requests a second that `client` sends at time `at`; `capacity` is that of its upstream at the start. 0 for a closed loop, whose
/// rate is not known before the run.
#[must_use]
pub fn rate_at(client: &ClientProfile, capacity: f64, at: Duration) -> f64 {
    if let Some(bursts) = client.bursts {
        let phase = at.as_nanos() % bursts.every.as_nanos().max(1);
        if phase < bursts.length.as_nanos() {
            return bursts.x * capacity;
        }
    }
    let rate =
        |x: Option<f64>, rps: Option<f64>| rps.unwrap_or_else(|| x.unwrap_or(0.0) * capacity);
    let next = client.load.partition_point(|point| point.at <= at);
    let Some(current) = next.checked_sub(1).and_then(|index| client.load.get(index)) else {
        return 0.0;
    };
    let from = rate(current.x, current.rps);
    match client.load.get(next) {
        Some(point) if point.ramp => {
            let length = (point.at - current.at).as_secs_f64();
            let share = (at - current.at).as_secs_f64() / length;
            from + (rate(point.x, point.rps) - from) * share
        }
        _ => from,
    }
}

/// The times at which a client sends, one after the other.
#[derive(Debug)]
struct ArrivalTimes<'a, R> {
    client: &'a ClientProfile,
    capacity: f64,
    duration: Duration,
    rng: R,
    /// The start of the current step, the requests expected in it, and those of them that are left.
    start: Duration,
    whole: f64,
    left: f64,
    until_next: f64,
}

impl<'a, R: Rng> ArrivalTimes<'a, R> {
    fn new(scenario: &Scenario, client: &'a ClientProfile, rng: R) -> Self {
        let mut this = Self {
            client,
            capacity: scenario.capacity_for(client),
            duration: scenario.duration,
            rng,
            start: Duration::ZERO,
            whole: 0.0,
            left: 0.0,
            until_next: 0.0,
        };
        this.until_next = this.gap();
        this.enter_step();
        this
    }

    fn gap(&mut self) -> f64 {
        match self.client.arrivals {
            Arrivals::Poisson => rng::exponential(&mut self.rng),
            Arrivals::Constant => 1.0,
        }
    }

    fn enter_step(&mut self) {
        self.whole = rate_at(self.client, self.capacity, self.start) * STEP.as_secs_f64();
        self.left = self.whole;
    }
}

impl<R: Rng> Iterator for ArrivalTimes<'_, R> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        while self.start < self.duration {
            if self.whole > 0.0 && self.until_next <= self.left {
                self.left -= self.until_next;
                let within = ((self.whole - self.left) / self.whole).clamp(0.0, 1.0);
                self.until_next = self.gap();
                return Some(self.start + STEP.mul_f64(within));
            }
            self.until_next -= self.left;
            self.start += STEP;
            self.enter_step();
        }
        None
    }
}

/// The requests of a scenario in order of time, drawn one after the other: the same seed gives the same ones. They are
/// not those of [`schedule`], which draws all times of a client before anything else.
#[derive(Debug)]
pub struct ArrivalStream<'a> {
    clients: Vec<StreamClient<'a>>,
}

#[derive(Debug)]
struct StreamClient<'a> {
    times: ArrivalTimes<'a, Generator>,
    next: Option<Duration>,
    conduct: Generator,
}

impl<'a> ArrivalStream<'a> {
    /// The requests of a scenario, from its own seed.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let client = |(client, index): (&'a ClientProfile, u32)| {
            let rng = rng::generator(scenario.seed, RngPurpose::Arrivals(index));
            let mut times = ArrivalTimes::new(scenario, client, rng);
            StreamClient {
                next: times.next(),
                times,
                conduct: rng::generator(scenario.seed, RngPurpose::Conduct(index)),
            }
        };
        Self {
            clients: scenario.clients.iter().zip(0..).map(client).collect(),
        }
    }
}

impl Iterator for ArrivalStream<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let due = self.clients.iter_mut().enumerate();
        let due = due.filter_map(|(index, client)| Some((client.next?, index, client)));
        let (at, index, client) = due.min_by_key(|(at, index, _)| (*at, *index))?;
        client.next = client.times.next();
        let ArrivalTimes {
            client: profile,
            rng,
            ..
        } = &mut client.times;
        Some(arrival(at, index, profile, rng, &mut client.conduct))
    }
}

/// The request that client number `index` sends at time `at`.
pub(crate) fn arrival(
    at: Duration,
    index: usize,
    client: &ClientProfile,
    rng: &mut Generator,
    conduct: &mut Generator,
) -> Arrival {
    Arrival {
        at,
        client: index,
        path: draw(&client.paths, rng).map_or(Cow::Borrowed("/"), Cow::Owned),
        criticality: draw(&client.criticality, rng),
        upload: client.upload.map(|upload| sending(upload, conduct)),
        reads_for: client.reads_for.map(|law| law.sample(conduct)),
    }
}

fn sending(upload: Upload, rng: &mut Generator) -> Sending {
    if rng::unit(rng) < upload.stalled {
        Sending::Stalls
    } else {
        Sending::Takes(upload.duration.sample(rng))
    }
}

/// Draws a key with its share as the probability.
fn draw(shares: &BTreeMap<String, f64>, rng: &mut Generator) -> Option<String> {
    let mut point = rng::unit(rng);
    for (key, share) in shares {
        point -= share;
        if point < 0.0 {
            return Some(key.clone());
        }
    }
    shares.keys().next_back().cloned()
}

/// Arrivals a second in windows of `window`, for charts.
#[must_use]
pub fn offered(arrivals: &[Arrival], window: Duration, duration: Duration) -> Vec<f64> {
    let windows = number::floor((duration.as_secs_f64() / window.as_secs_f64()).ceil());
    let mut counts = vec![0_u32; windows];
    for arrival in arrivals {
        let index = number::floor(arrival.at.as_secs_f64() / window.as_secs_f64());
        if let Some(count) = counts.get_mut(index) {
            *count += 1;
        }
    }
    counts
        .into_iter()
        .map(|count| f64::from(count) / window.as_secs_f64())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(clients: &str) -> Scenario {
        let head = "name='t'\ntitle='t'\nprose='p'\nseed=11\nduration='20s'\n";
        Scenario::parse(&format!("{head}{clients}"), "test").unwrap()
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread() {
        let arrivals = schedule(&scenario("[[clients]]\nload=[{at='0s', rps=400.0}]"));
        // 8,000 expected, standard deviation 89.
        assert!(
            (7_700..8_300).contains(&arrivals.len()),
            "{}",
            arrivals.len()
        );
        let gaps: Vec<f64> = arrivals
            .windows(2)
            .map(|pair| (pair[1].at - pair[0].at).as_secs_f64())
            .collect();
        let mean = gaps.iter().sum::<f64>() / number::float_len(gaps.len());
        let variance = gaps
            .iter()
            .map(|gap| (gap - mean) * (gap - mean))
            .sum::<f64>()
            / number::float_len(gaps.len());
        let variation = variance.sqrt() / mean;
        assert!(
            (0.93..1.07).contains(&variation),
            "coefficient of variation of Poisson gaps is 1, found {variation}"
        );
    }

    #[test]
    fn uploads_and_reading_leave_the_times_of_arrival_as_they_are() {
        let plain = "[[clients]]\nload=[{at='0s', rps=400.0}]";
        let busy = "\nupload={duration={kind='constant', mean='2s'}, stalled=0.25}\n\
            reads_for={kind='lognormal', mean='9s', sigma=0.5}";
        let (plain, busy) = (
            schedule(&scenario(plain)),
            schedule(&scenario(&format!("{plain}{busy}"))),
        );
        let times = |list: &[Arrival]| list.iter().map(|one| one.at).collect::<Vec<_>>();
        assert_eq!(times(&plain), times(&busy));
        let stalled = busy.iter().filter(|one| one.uploads_for().is_none());
        let share = number::float_len(stalled.count()) / number::float_len(busy.len());
        // The standard error of 8,000 draws is 0.005.
        assert!((share - 0.25).abs() < 0.02, "{share}");
        assert!(
            plain
                .iter()
                .all(|one| one.upload.is_none() && one.reads_for.is_none())
        );
    }

    #[test]
    fn constant_arrivals_keep_their_distance() {
        let arrivals = schedule(&scenario(
            "[[clients]]\narrivals='constant'\nload=[{at='0s', rps=100.0}]",
        ));
        assert!(
            (1_999..=2_000).contains(&arrivals.len()),
            "{}",
            arrivals.len()
        );
    }

    #[test]
    fn same_seed_gives_the_same_list() {
        let scenario = scenario(
            "[[clients]]\nload=[{at='0s', x=1.0}]\ncriticality={critical=0.1, sheddable=0.9}",
        );
        assert_eq!(schedule(&scenario), schedule(&scenario));
    }

    #[test]
    fn ramp_grows_evenly_and_step_does_not() {
        let s = scenario(
            "[[clients]]\nload=[{at='0s', x=0.0}, {at='10s', x=2.0, ramp=true}, {at='15s', x=0.5}]",
        );
        let at = |t: u64| rate_at(&s.clients[0], 400.0, Duration::from_secs(t));
        assert!((at(5) - 400.0).abs() < 1e-6);
        assert!((at(12) - 800.0).abs() < 1e-6);
        assert!((at(16) - 200.0).abs() < 1e-6);
    }

    #[test]
    fn burst_replaces_the_base_rate() {
        let s = scenario(
            "[[clients]]\nload=[{at='0s', x=0.05}]\nbursts={every='500ms', length='50ms', x=6.0}",
        );
        assert!((rate_at(&s.clients[0], 400.0, Duration::from_millis(510)) - 2_400.0).abs() < 1e-6);
        assert!((rate_at(&s.clients[0], 400.0, Duration::from_millis(560)) - 20.0).abs() < 1e-6);
        let mean = number::float_len(schedule(&s).len()) / 20.0 / 400.0;
        assert!((mean - 0.645).abs() < 0.03, "{mean}");
    }
}
