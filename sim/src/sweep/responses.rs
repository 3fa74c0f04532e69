//! Bodies, stalls and crowds of a story.

use std::time::Duration;

use super::rounded;
use super::service::{behaviour, lognormal};
use super::uniform::Uniform;
use crate::number;
use crate::profile::{Abandoned, Body, Connections, Contention, HeaderTiming, Pauses, ServiceTime};
use crate::scenario::{LatencyUntil, Scenario};

/// Bodies are at most this part of a run.
const LONGEST_BODY: f64 = 0.05;
/// A server whose bodies hold slots gets enough slots to serve this many requests a second.
const LEAST_CAPACITY: f64 = 10.0;

/// Makes the objective half of what each answer takes, so that none meets it.
pub(super) fn unreachable(story: &mut Scenario) -> String {
    let mut mean = Duration::ZERO;
    if let Some(behaviour) = behaviour(story) {
        mean = behaviour.service.mean();
        behaviour.service = ServiceTime::constant(mean);
    }
    let services = story.upstreams.iter_mut().flat_map(|one| &mut one.timeline);
    for change in services {
        let service = &mut change.change.service;
        *service = service.map(|law| ServiceTime::constant(law.mean()));
    }
    let objective = rounded::millis(number::millis(mean) / 2.0).max(Duration::from_millis(1));
    story.slo.latency = objective;
    format!("an objective of {} ms, out of reach", objective.as_millis())
}

#[derive(Clone, Copy)]
enum ResponseKind {
    Free,
    Held,
    Early,
    ToTheEnd,
}

/// Responses have bodies.
pub(super) fn body(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let longest = number::millis(story.duration) * LONGEST_BODY;
    let kind = uniform.one_of(
        ResponseKind::Free,
        &[
            ResponseKind::Free,
            ResponseKind::Held,
            ResponseKind::Held,
            ResponseKind::Early,
            ResponseKind::ToTheEnd,
        ],
    );
    let mean_ms = match kind {
        ResponseKind::Free | ResponseKind::Held => uniform.scale(100.0, 5_000.0).min(longest),
        ResponseKind::Early | ResponseKind::ToTheEnd => uniform.scale(20.0, 1_000.0).min(longest),
    };
    let duration = lognormal(uniform, rounded::millis(mean_ms), (0.2, 0.8));
    let holds_slot = match kind {
        ResponseKind::Free | ResponseKind::Early => false,
        ResponseKind::Held => true,
        ResponseKind::ToTheEnd => uniform.happens(0.5),
    };
    let waits_for_first_byte = uniform.happens(0.3);
    let skips = uniform.happens(0.5);
    let behaviour = behaviour(story)?;
    behaviour.body = Some(Body {
        duration,
        holds_slot,
        bytes: 0,
    });
    if holds_slot && skips {
        behaviour.abandoned = Abandoned::Skip;
    }
    let mut words = format!("bodies of {mean_ms:.0} ms");
    if holds_slot {
        words.push_str(" that hold a slot");
        let capacity = behaviour.capacity();
        if capacity < LEAST_CAPACITY {
            let more = LEAST_CAPACITY / capacity;
            grow(story, more);
        }
    }
    match kind {
        ResponseKind::Early => {
            story.upstreams.first_mut()?.behaviour.headers = HeaderTiming::AtOnce;
            story.slo.until = LatencyUntil::FirstByte;
            words.push_str(" after early headers");
        }
        ResponseKind::ToTheEnd => {
            story.slo.until = LatencyUntil::End;
            // Hardly any body takes so much longer than the mean.
            let more = duration.mean().mul_f64(4.0);
            story.slo.latency = whole_millis(story.slo.latency + more);
            story
                .clients
                .iter_mut()
                .for_each(|client| client.deadline = whole_millis(client.deadline + more * 2));
            let objective = story.slo.latency.as_millis();
            words.push_str(&format!(", objective to the end now {objective} ms"));
        }
        ResponseKind::Free | ResponseKind::Held if waits_for_first_byte => {
            story.slo.until = LatencyUntil::FirstByte
        }
        ResponseKind::Free | ResponseKind::Held => {}
    }
    Some(words)
}

/// More slots than can work at the same time.
pub(super) fn contention(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let above = behaviour(story)?.slots;
    let slope = uniform.scale(1.5, 5.0) / f64::from(above);
    let slope = (slope * 10_000.0).round() / 10_000.0;
    grow(story, uniform.scale(2.0, 5.0));
    behaviour(story)?.contention = Some(Contention { above, slope });
    Some(format!("contention above {above}, slope {slope}"))
}

/// A limit of connections, and a backlog.
pub(super) fn backlog(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let behaviour = behaviour(story)?;
    // Bodies take connections too.
    let body = behaviour
        .body
        .map_or(0.0, |body| body.duration.mean().as_secs_f64());
    let service = behaviour.service.mean().as_secs_f64();
    let needed = f64::from(behaviour.slots) * (1.0 + body / service);
    let max = rounded::count(needed * uniform.scale(1.1, 4.0)).max(2);
    let backlog = rounded::count(f64::from(max) * uniform.scale(0.3, 8.0));
    behaviour.connections = Some(Connections { max, backlog });
    Some(format!("{max} connections and a backlog of {backlog}"))
}

/// The whole endpoint stands still at times.
pub(super) fn pauses(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let every_ms = uniform.scale(500.0, 5_000.0);
    let length_ms = (every_ms * uniform.scale(0.02, 0.2)).max(10.0);
    let together = uniform.happens(0.3);
    behaviour(story)?.pauses = Some(Pauses {
        every: rounded::millis(every_ms),
        length: rounded::millis(length_ms),
        together,
    });
    Some(format!("pauses of {length_ms:.0} in {every_ms:.0} ms"))
}

/// Multiplies the slots of the service by `factor`, at the start and in later changes.
fn grow(story: &mut Scenario, factor: f64) {
    let grown = |slots: u32| rounded::count((f64::from(slots) * factor).ceil()).max(1);
    for upstream in &mut story.upstreams {
        upstream.behaviour.slots = grown(upstream.behaviour.slots);
        for change in &mut upstream.timeline {
            change.change.slots = change.change.slots.map(grown);
        }
    }
}

fn whole_millis(time: Duration) -> Duration {
    rounded::millis(number::millis(time))
}
