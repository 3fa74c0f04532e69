//! One scenario over time, contender beside contender.

use super::{of, variants_of};
use crate::report::chart::{Band, Chart, Level, Line, Stroke};
use crate::run::Outcome;
use crate::variant::Variant;
use tidegate_sim::number;
use tidegate_sim::profile::Mode;
use tidegate_sim::scenario::Scenario;

const fn class(variant: Variant) -> &'static str {
    match variant {
        Variant::Tidegate => "c-tidegate",
        Variant::None => "c-none",
        Variant::StaticDefault => "c-offered",
        Variant::StaticTuned => "c-shed",
        Variant::Outlier => "c-oracle",
        Variant::AdaptiveConcurrency => "c-blue",
        Variant::AdmissionControl => "c-pink",
        Variant::Both => "c-violet",
    }
}

/// The charts of one scenario.
pub(super) fn charts(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<Chart> {
    let firsts: Vec<&Outcome> = variants_of(outcomes)
        .into_iter()
        .filter_map(|variant| of(outcomes, &scenario.name, variant).first().copied())
        .collect();
    let Some(any) = firsts.first() else {
        return Vec::new();
    };
    let seconds = scenario.duration.as_secs_f64();
    let new = |title: &str, unit: &str| Chart {
        bands: bands(scenario),
        ..Chart::new(title, unit, seconds)
    };

    let mut goodput = new("Goodput", "good answers a second, by time of arrival");
    let capacity = any.windows.iter().map(|w| w.oracle).fold(1.0, f64::max);
    goodput.top = Some(capacity * 1.25);
    let line = |name: &str, class, stroke, points| Line {
        name: name.to_owned(),
        class,
        points,
        stroke,
    };
    let oracle = any
        .windows
        .iter()
        .map(|w| (w.at_s, Some(w.oracle)))
        .collect();
    goodput
        .lines
        .push(line("oracle", "c-oracle", Stroke::Dashed, oracle));
    let mut latency = new("99th percentile of answers 200", "ms");
    latency.top = Some(1_050.0);
    latency.levels.push(Level {
        value: number::millis(scenario.slo.latency),
        label: "objective".to_owned(),
    });
    let mut shed = new("Shed", "requests a second");
    let offered = any
        .windows
        .iter()
        .map(|w| (w.at_s, Some(w.offered)))
        .collect();
    shed.lines
        .push(line("offered", "c-offered", Stroke::Dashed, offered));
    // Ours is drawn last, above the others.
    for outcome in firsts.iter().rev() {
        let (name, class) = (outcome.variant.name(), class(outcome.variant));
        let points = |value: fn(&tidegate_sim::series::Window) -> Option<f64>| {
            outcome.windows.iter().map(|w| (w.at_s, value(w))).collect()
        };
        goodput
            .lines
            .push(line(name, class, Stroke::Solid, points(|w| Some(w.good))));
        latency
            .lines
            .push(line(name, class, Stroke::Solid, points(|w| w.p99_ms)));
        if outcome.figures.shed > 0 {
            shed.lines
                .push(line(name, class, Stroke::Solid, points(|w| Some(w.shed))));
        }
    }
    let mut charts = vec![goodput, latency];
    if shed.lines.len() > 1 {
        charts.push(shed);
    }
    let ours = firsts
        .iter()
        .find(|outcome| outcome.variant == Variant::Tidegate);
    charts.extend(ours.map(|outcome| {
        inside(
            outcome,
            new(
                "Inside the filter",
                "requests; shaded while the breaker is not closed",
            ),
        )
    }));
    charts
}

/// Limit, in flight and breaker of the filter.
fn inside(outcome: &Outcome, mut chart: Chart) -> Chart {
    let mut line =
        |name: &str, class, stroke, value: fn(&tidegate_sim::series::Sample) -> Option<u64>| {
            let points = outcome
                .samples
                .iter()
                .map(|s| (s.at_s, value(s).map(number::float)))
                .collect();
            chart.lines.push(Line {
                name: name.to_owned(),
                class,
                points,
                stroke,
            });
        };
    line("in flight", "c-blue", Stroke::Solid, |s| s.in_flight);
    line("limit", "c-tidegate", Stroke::Steps, |s| s.limit);
    let pairs = outcome.samples.windows(2).filter_map(|pair| match pair {
        [a, b] if a.breaker.is_some_and(|state| state > 0) => Some((a.at_s, b.at_s)),
        _ => None,
    });
    chart.bands = pairs
        .map(|(from, to)| Band {
            from,
            to,
            label: String::new(),
            is_trouble: true,
        })
        .collect();
    chart
}

/// Stretches in which an upstream is not itself.
fn bands(scenario: &Scenario) -> Vec<Band> {
    let mut bands = Vec::new();
    for profile in &scenario.upstreams {
        let stages = profile.stages();
        let ends = stages
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain(std::iter::once(scenario.duration));
        for ((from, behaviour), to) in stages.iter().zip(ends) {
            let label = match behaviour.mode {
                Mode::Serve if behaviour.slots < profile.behaviour.slots => "fewer slots",
                Mode::Serve if behaviour.errors.is_some_and(|e| e.share > 0.0) => "partly broken",
                Mode::Serve => continue,
                Mode::Fail => "fails at once",
                Mode::Hang => "hangs",
                Mode::Refuse => "refuses connections",
                Mode::Reset => "resets connections",
            };
            let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
            bands.push(Band {
                from,
                to,
                label: label.to_owned(),
                is_trouble: true,
            });
        }
    }
    bands
}
