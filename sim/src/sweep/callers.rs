//! Callers of a story: streams, uploads, classes of requests, and callers without value.

use super::rounded;
use super::service::{behaviour, lognormal, slower};
use super::uniform::Uniform;
use crate::number;
use crate::profile::{Body, Change, ServiceTime};
use crate::scenario::{
    Bursts, ClientProfile, LatencyUntil, LoadPoint, Quota, Scenario, TimedChange, Upload,
};

/// A constant multiple of the capacity.
fn steady(x: f64) -> Vec<LoadPoint> {
    vec![from(std::time::Duration::ZERO, x)]
}

const fn from(at: std::time::Duration, x: f64) -> LoadPoint {
    LoadPoint {
        at,
        x: Some(x),
        rps: None,
        ramp: false,
    }
}

/// A copy of the first client that sends `x` times the capacity and does not retry.
fn other(story: &Scenario, x: f64) -> Option<ClientProfile> {
    let client = story.clients.first()?.clone();
    Some(ClientProfile {
        load: steady(rounded::hundredths(x).max(0.01)),
        bursts: None,
        retries: None,
        paths: [].into(),
        ..client
    })
}

/// Callers that open a stream and read it for a while.
pub(super) fn streams(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    if story.slo.until == LatencyUntil::End {
        return None;
    }
    let longest = number::millis(story.duration) / 5.0;
    let mean_ms = uniform.scale(1_000.0, 30_000.0).min(longest);
    let client = other(story, uniform.scale(0.02, 0.15))?;
    let reads_for = Some(lognormal(uniform, rounded::millis(mean_ms), (0.2, 0.8)));
    let endless = Body {
        duration: ServiceTime::constant(story.duration),
        holds_slot: false,
        bytes: 0,
    };
    behaviour(story)?
        .bodies
        .insert("/stream".to_owned(), endless);
    story.clients.push(ClientProfile {
        paths: [("/stream".to_owned(), 1.0)].into(),
        reads_for,
        ..client
    });
    Some(format!("streams read for {mean_ms:.0} ms"))
}

/// The service becomes slower at a load that it can still serve.
pub(super) fn slower_for_all(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let factor = rounded::hundredths(uniform.between(1.3, 3.0));
    let x = rounded::hundredths(uniform.between(0.3, 0.8) / factor);
    let law = behaviour(story)?.service;
    let to = |share, service| TimedChange {
        at: rounded::part(story.duration, share),
        change: Change {
            service: Some(service),
            ..Change::default()
        },
    };
    let mut timeline = vec![to(0.4, slower(&law, factor))];
    let is_back = uniform.happens(0.5);
    if is_back {
        timeline.push(to(0.7, law));
    }
    story.upstreams.first_mut()?.timeline = timeline;
    let client = story.clients.first_mut()?;
    client.load = steady(x);
    client.bursts = None;
    let how_long = if is_back { "for a while" } else { "for good" };
    Some(format!(
        "instead steady {x}, {factor} x slower for all {how_long}"
    ))
}

/// A part of the requests takes longer.
pub(super) fn slow_class(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let factor = rounded::hundredths(uniform.between(2.0, 8.0));
    let share = rounded::hundredths(uniform.between(0.05, 0.3));
    let is_meant = uniform.happens(0.5);
    let behaviour = behaviour(story)?;
    let law = slower(&behaviour.service, factor);
    behaviour.paths.insert("/slow".to_owned(), law);
    let client = story.clients.first_mut()?;
    client.paths = [("/".to_owned(), 1.0 - share), ("/slow".to_owned(), share)].into();
    let promise = if is_meant {
        lengthen(story, factor)
    } else {
        String::new()
    };
    Some(format!("{share} of them {factor} x slower{promise}"))
}

/// Most requests are cheap, then most are expensive; the load stays the same, and can be served.
pub(super) fn mix_shift(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let factor = rounded::hundredths(uniform.between(2.0, 6.0));
    let x = uniform.between(0.3, 0.8);
    let part = uniform.between(0.6, 0.95);
    let behaviour = behaviour(story)?;
    let law = slower(&behaviour.service, factor);
    behaviour.paths.insert("/expensive".to_owned(), law);
    let (much, little) = (
        rounded::hundredths(x * part),
        rounded::hundredths(x * (1.0 - part)).max(0.01),
    );
    let at = |share| rounded::part(story.duration, share);
    let shape = |first, second| {
        vec![
            from(at(0.0), first),
            from(at(0.35), second),
            from(at(0.7), first),
        ]
    };
    let (cheap, dear) = (shape(much, little), shape(little, much));
    let expensive = ClientProfile {
        load: dear,
        paths: [("/expensive".to_owned(), 1.0)].into(),
        ..other(story, x)?
    };
    let client = story.clients.first_mut()?;
    client.load = cheap;
    client.bursts = None;
    story.clients.push(expensive);
    let promise = lengthen(story, factor);
    Some(format!(
        "instead steady {x:.2}, first {part:.2} of it by cheap requests, then by {factor} x slower ones{promise}"
    ))
}

/// Lengthens the objective so that a class that takes `factor` times longer can meet it; returns that in words.
fn lengthen(story: &mut Scenario, factor: f64) -> String {
    let longer = |time: std::time::Duration| rounded::millis(number::millis(time) * factor);
    story.slo.latency = longer(story.slo.latency);
    for client in &mut story.clients {
        client.deadline = longer(client.deadline);
    }
    format!(", objective now {} ms", story.slo.latency.as_millis())
}

/// A part of the requests has a body.
pub(super) fn uploads(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let share = uniform.between(0.1, 0.6);
    let mean_ms = uniform.scale(50.0, 3_000.0);
    let duration = lognormal(uniform, rounded::millis(mean_ms), (0.2, 0.8));
    let stalled = rounded::hundredths(uniform.between(0.02, 0.3));
    let stalled = if uniform.happens(0.4) { stalled } else { 0.0 };
    let client = story.clients.first_mut()?;
    let mut uploader = client.clone();
    scale_load(client, 1.0 - share);
    scale_load(&mut uploader, share);
    // Callers know how long an upload may take.
    let patience = number::millis(uploader.deadline) + 5.0 * mean_ms;
    uploader.deadline = rounded::millis(patience);
    uploader.upload = Some(Upload { duration, stalled });
    story.clients.push(uploader);
    let stalls = if stalled > 0.0 {
        format!(", {stalled} of which stall")
    } else {
        String::new()
    };
    Some(format!(
        "{share:.2} of them uploads of {mean_ms:.0} ms{stalls}"
    ))
}

fn scale_load(client: &mut ClientProfile, factor: f64) {
    let scaled = |x: f64| (x * factor * 10_000.0).round() / 10_000.0;
    for point in &mut client.load {
        point.x = point.x.map(scaled);
    }
    if let Some(bursts) = &mut client.bursts {
        bursts.x = scaled(bursts.x);
    }
}

/// A caller beyond its quota.
pub(super) fn quota(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let x = rounded::hundredths(uniform.between(0.1, 0.5));
    let mut client = other(story, x)?;
    let rps = story.capacity_for(&client) * x * uniform.between(0.1, 0.6);
    let rps = rounded::hundredths(rps).max(0.1);
    client.quota = Some(Quota {
        rps,
        status: 429,
        retry_after: uniform.one_of(None, &[Some(1)]),
    });
    story.clients.push(client);
    Some(format!("one at {x} with a quota of {rps}/s"))
}

/// A caller that asks for a path that always fails.
pub(super) fn crash(story: &mut Scenario, uniform: &mut Uniform) -> Option<String> {
    let x = rounded::hundredths(uniform.scale(0.05, 1.0));
    let mut client = other(story, x)?;
    client.paths = [("/crash".to_owned(), 1.0)].into();
    let in_bursts = uniform.happens(0.5);
    let every_ms = uniform.scale(500.0, 10_000.0);
    if in_bursts {
        client.load = steady(0.0);
        client.bursts = Some(Bursts {
            every: rounded::millis(every_ms),
            length: rounded::millis(every_ms * 0.1),
            x,
        });
    }
    behaviour(story)?.failing.insert("/crash".to_owned(), 500);
    story.clients.push(client);
    let how = if in_bursts { " in bursts" } else { "" };
    Some(format!("one at {x}{how} for a path that crashes"))
}
