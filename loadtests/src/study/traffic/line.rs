//! A service with a bounded waiting line near its capacity, and spikes of load with callers that retry.

use std::ops::Range;
use std::time::Duration;

use tidegate_sim::arrivals::{self, Arrival};
use tidegate_sim::number::float_len;
use tidegate_sim::scenario::{Scenario, ScenarioError};

use super::super::plan::by;
use super::cell::cell;
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad};
use crate::result::Extent;

const STORM: &str = include_str!("../../../scenarios/storm.toml");
const STORM_AT_CAPACITY: &str = include_str!("../../../scenarios/storm-at-capacity.toml");
const QUEUE: &str = include_str!("../../../scenarios/queue.toml");

/// Lengths of the waiting line at loads around the capacity; the publication's is 20.
pub(super) const QUEUES: [u32; 4] = [10, 20, 50, 100];

/// The length of the waiting line in the publication.
pub(super) const QUEUE_LENGTH: u32 = 20;

/// Parameter with the number of requests before the spike; without it there are no retries before the spike.
pub(crate) const REQUESTS_BEFORE_SPIKE: &str = "requests_before_spike";

/// The period in which the load of the storms exceeds the capacity, in seconds from the beginning.
pub(crate) fn storm_spike() -> Option<Range<f64>> {
    let storm = Scenario::parse(STORM, "storm.toml").ok()?;
    let load = &storm.clients.first()?.load;
    let mut points = load
        .iter()
        .skip_while(|point| point.x.is_none_or(|x| x <= 1.0));
    let mut next = || points.next().map(|point| point.at.as_secs_f64());
    Some(next()?..next()?)
}

/// Lengths of the waiting line in a reduced run: others than the published one only above the capacity.
pub(super) const fn few_queues(percent: u32) -> &'static [u32] {
    if percent > 100 { &[10, 20, 100] } else { &[20] }
}

pub(super) fn queue(
    (percent, length): (u32, u32),
    contender: Protection,
    repetition: u32,
    extent: Extent,
) -> Result<Cell, ScenarioError> {
    let mut scenario = Scenario::parse(QUEUE, "queue.toml")?;
    bound(&mut scenario, length);
    scenario.duration = Duration::from_secs(by(extent, 6, 30));
    let points = scenario
        .clients
        .iter_mut()
        .flat_map(|client| &mut client.load);
    for point in points {
        point.x = Some(f64::from(percent) / 100.0);
    }
    let known = [
        ("offered_percent", percent.into()),
        ("queue", length.into()),
    ];
    let name = if length == QUEUE_LENGTH {
        format!("queue offered={percent}%")
    } else {
        format!("queue offered={percent}% length={length}")
    };
    Ok(cell(
        &name,
        known,
        contender,
        repetition,
        (scenario, CellLoad::Story),
    ))
}

/// A spike of five seconds with callers that retry: at the capacity with a waiting line of `queue`, as published; without a
/// `queue`, from 70 to 150 % of the capacity.
pub(super) fn storm(
    queue: Option<u32>,
    (every_s, length_s): (u32, u64),
    contender: Protection,
    repetition: u32,
) -> Result<Cell, ScenarioError> {
    let mut scenario = match queue {
        Some(_) => Scenario::parse(STORM_AT_CAPACITY, "storm-at-capacity.toml")?,
        None => Scenario::parse(STORM, "storm.toml")?,
    };
    scenario.duration = Duration::from_secs(length_s);
    let retries = scenario
        .clients
        .iter_mut()
        .filter_map(|client| client.retries.as_mut());
    for retries in retries {
        retries.backoff = Duration::from_secs(every_s.into());
    }
    let mut name = format!("storm retry={every_s}s");
    let mut known = vec![
        ("retry_every_s", every_s.into()),
        ("retries", 10_u32.into()),
    ];
    if let (Some(length), Some(spike)) = (queue, storm_spike()) {
        bound(&mut scenario, length);
        name = format!("storm load=100% queue={length} retry={every_s}s");
        known.push(("queue", length.into()));
        let is_before = |arrival: &Arrival| arrival.at.as_secs_f64() < spike.start;
        let before = arrivals::schedule(&scenario);
        let before = float_len(before.into_iter().filter(is_before).count());
        known.push((REQUESTS_BEFORE_SPIKE, before.into()));
    }
    let mut cell = cell(
        &name,
        [],
        contender,
        repetition,
        (scenario, CellLoad::Story),
    );
    cell.parameters.extend(
        known
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(cell)
}

/// Bounds the waiting line of the service.
fn bound(scenario: &mut Scenario, length: u32) {
    let queues = scenario.upstreams.iter_mut();
    let queues = queues.filter_map(|profile| profile.behaviour.queue.as_mut());
    for queue in queues {
        queue.max = length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spike_of_the_storms_is_known() {
        assert_eq!(storm_spike(), Some(4.0..9.0));
        let other = Scenario::parse(STORM_AT_CAPACITY, "s").unwrap();
        let points: Vec<_> = other.clients[0]
            .load
            .iter()
            .map(|at| (at.at, at.x))
            .collect();
        let second = Duration::from_secs;
        let expected = [(0, 1.0), (4, 1.2), (9, 1.0)].map(|(at, x)| (second(at), Some(x)));
        assert_eq!(points, expected, "the same spike");
    }
}
