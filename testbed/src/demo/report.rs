//! The demo's report: the observations in prose, figures and charts.

use std::collections::BTreeMap;

use super::DemoResult;
use super::charts::{bad, inside, latency, main_chart, reached};
use crate::envoy::PushOutcome;
use tidegate_report::page::{Card, Page};
use tidegate_sim::number;

/// The report as one page.
#[must_use]
pub fn page(told: &DemoResult, metadata: &BTreeMap<String, String>) -> Page {
    let story = &told.story;
    let mut page = Page::new("Tidegate: the same load with and without");
    page.paragraph(story.scenario.prose.trim());
    page.cards(cards(told)).charts([main_chart(told)]);
    page.paragraph(
        "A good answer is a 200 within the objective's latency, counted from the moment the request was due. \
         Callers do not wait for one another and give up after one second. \
         The dashed line is what an oracle that knows the capacity would have got out of the same arrivals.",
    );
    page.charts([latency(told), bad(told), reached(told), inside(told)]);
    page.heading("What happened");
    for phase in &story.phases {
        page.subheading(&phase.title).paragraph(phase.prose.trim());
    }
    for (push, outcome) in story.pushes.iter().zip(&told.pushes) {
        let verdict = match outcome {
            Some(PushOutcome::Accepted) => "accepted",
            Some(PushOutcome::Rejected) => "rejected",
            None => "not noticed",
        };
        page.note(&format!(
            "Configuration push after {:.1} s: latency target {} ms, {verdict} by the running Envoy.",
            push.at.as_secs_f64(),
            push.latency.as_millis()
        ));
    }
    for one in &told.repeated {
        page.note(&format!(
            "The machine disturbed {one}. What is shown of this phase was played again later."
        ));
    }
    for one in &told.disturbed {
        page.note(&format!(
            "The machine disturbed {one}. It did so again when the phase was repeated: its figures say little."
        ));
    }
    page.heading("Phase by phase");
    page.note("Rates are per second. Late answers count as errors.");
    page.table(told.table());
    let facts: Vec<String> = metadata
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    page.note(&format!(
        "{} · CPU time of Envoy: {:.1} s with, {:.1} s without",
        facts.join(" · "),
        told.with.envoy_cpu_s,
        told.without.envoy_cpu_s
    ));
    page
}

fn cards(told: &DemoResult) -> Vec<Card> {
    let (with, without) = told.figures();
    let of = |name: &str| {
        let find =
            |side: &[super::phases::PhaseFigures]| side.iter().find(|p| p.phase == name).cloned();
        (
            find(&with).unwrap_or_default(),
            find(&without).unwrap_or_default(),
        )
    };
    let (overload, overload_without) = of("overload");
    let outage = |side: &[super::phases::PhaseFigures]| {
        let hit: Vec<_> = side
            .iter()
            .filter(|p| p.phase == "errors" || p.phase == "hang")
            .collect();
        hit.iter().map(|p| p.reached).sum::<f64>() / number::float_len(hit.len()).max(1.0)
    };
    let ms = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(ms) if ms >= 950.0 => format!("{:.1} s", ms / 1_000.0),
        Some(ms) => format!("{ms:.0} ms"),
    };
    let (hang, hang_without) = of("hang");
    let card = |title: &str, with: String, without: String, note: &str| Card {
        title: title.to_owned(),
        with,
        without,
        note: note.to_owned(),
    };
    vec![
        card(
            "Goodput at 3 x capacity",
            format!("{:.0}/s", overload.good),
            format!("{:.0}/s", overload_without.good),
            &format!("of {:.0}/s that the service can do", told.story.capacity()),
        ),
        card(
            "p99 at 3 x capacity",
            ms(overload.p99_ms),
            ms(overload_without.p99_ms),
            "of the answers 200",
        ),
        card(
            "Sent to the dead service",
            format!("{:.0}/s", outage(&with)),
            format!("{:.0}/s", outage(&without)),
            "requests, during the outage",
        ),
        card(
            "Wait while it hangs",
            ms(hang.p50_any_ms),
            ms(hang_without.p50_any_ms),
            "until a caller knows, median",
        ),
    ]
}
