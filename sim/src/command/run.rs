//! `run`: one scenario on one contender, in figures and over time.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use tidegate_core::BreakerPhase;
use tidegate_sim::number;
use tidegate_sim::run::{Noted, Run};
use tidegate_sim::scenario::{Measure, Range, Scenario};
use tidegate_sim::series::{self, RunWindow};
use tidegate_sim::world;

/// Shows one scenario: its figures, the expectations, the run over time, and what breakers did.
#[derive(Debug, Parser)]
pub(crate) struct ScenarioRunOptions {
    /// A scenario file, or the name of one of this repository.
    scenario: String,
    /// The contender that plays it.
    #[arg(long, default_value = "tidegate")]
    contender: String,
    /// Another seed than the scenario's.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(options: &ScenarioRunOptions) -> Result<ExitCode> {
    let mut scenario = super::scenario(&options.scenario)?;
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    let kind = super::contender(&options.contender)?;
    let clock = Instant::now();
    let run = world::play(&scenario, &kind)?;
    let took = clock.elapsed();

    out!("{} - {}\n", scenario.name, scenario.title);
    out!("{}\n", scenario.prose.trim());
    let misses = figures(&scenario, &run);
    over_time(&scenario, &run);
    notes(&scenario, &run);
    out!(
        "{} seed {}: {} requests, {} events in {:.2} s, digest {}",
        kind.name,
        scenario.seed,
        run.records.len(),
        run.events,
        took.as_secs_f64(),
        run.digest
    );
    // The ranges are Tidegate's; for others they only show the difference.
    let failed = misses > 0 && kind.name == tidegate_sim::tidegate::KIND.name;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Prints the figures beside the expectations; returns how many are missed.
fn figures(scenario: &Scenario, run: &Run) -> usize {
    let expected = scenario.expected_in_sim();
    let mut misses = 0;
    for measure in Measure::ALL {
        let value = run.figures.measure(measure);
        let range = expected.get(&measure);
        let Some(value) = value.or_else(|| range.map(|_| f64::NAN)) else {
            continue;
        };
        let verdict = range.map_or_else(String::new, |range| {
            let is_met = range.contains(value);
            misses += usize::from(!is_met);
            judged(range, is_met)
        });
        out!("  {:<26} {value:>10.4}  {verdict}", measure.to_string());
    }
    for (class, success) in &run.figures.success_by_criticality {
        out!("  {:<26} {success:>10.4}", format!("success of {class}"));
    }
    for (upstream, share) in &run.figures.wasted_by_upstream {
        out!(
            "  {:<26} {share:>10.4}",
            format!("wasted work of {upstream}")
        );
    }
    let sheds = run.sheds.iter();
    let sheds: Vec<String> = sheds
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    out!("  {:<26} {}", "sheds by reason", sheds.join(", "));
    if scenario.upstreams.len() > 1 {
        let named = run.sheds_at.iter().filter_map(|(upstream, count)| {
            Some(format!(
                "{} {count}",
                scenario.upstreams.get(*upstream)?.name
            ))
        });
        let named: Vec<String> = named.collect();
        out!("  {:<26} {}", "sheds by upstream", named.join(", "));
    }
    out!("  {:<26} {:>10}\n", "most in flight", run.most_in_flight);
    misses
}

fn judged(range: &Range, is_met: bool) -> String {
    let word = if is_met { "as expected" } else { "MISSED" };
    format!("{word}: {range}")
}

/// Columns of the lines over time.
const COLUMNS: usize = 60;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn over_time(scenario: &Scenario, run: &Run) {
    let columns = u32::try_from(COLUMNS).unwrap_or(u32::MAX);
    let length = (scenario.duration / columns).max(Duration::from_millis(100));
    let windows =
        series::windows_with(scenario, &run.records, length, |at| scenario.latency_at(at));
    let rate = |value: fn(&RunWindow) -> f64| -> Vec<f64> { windows.iter().map(value).collect() };
    let (oracle, good) = (rate(|window| window.oracle), rate(|window| window.good));
    let failed = rate(|window| window.failed);
    // One scale for what is compared.
    let top = greatest(&oracle)
        .max(greatest(&good))
        .max(greatest(&failed));
    let (offered, shed) = (rate(|window| window.offered), rate(|window| window.shed));
    print_line("offered a second", &offered, greatest(&offered));
    print_line("oracle's", &oracle, top);
    print_line("good", &good, top);
    print_line("failed", &failed, top);
    print_line("shed", &shed, greatest(&shed));
    let p99 = rate(|window| window.p99_ms.unwrap_or(0.0));
    print_line("p99 ms", &p99, greatest(&p99));
    let at = |column: usize| (number::float_len(column) + 1.0) * length.as_secs_f64();
    let sampled = |value: fn(&series::SeriesSample) -> Option<u64>| -> Vec<f64> {
        (0..windows.len())
            .map(|column| {
                let before = run.samples.iter().rev().find(|s| s.at_s <= at(column));
                before.and_then(value).map_or(0.0, number::float)
            })
            .collect()
    };
    for (name, line) in [
        ("limit", sampled(|sample| sample.limit)),
        ("in flight", sampled(|sample| sample.in_flight)),
        ("waiting upstream", sampled(|sample| Some(sample.waiting))),
        ("breaker", sampled(|sample| sample.breaker)),
    ] {
        print_line(name, &line, greatest(&line));
    }
    out!();
}

fn greatest(line: &[f64]) -> f64 {
    line.iter().copied().fold(0.0, f64::max)
}

fn print_line(name: &str, line: &[f64], top: f64) {
    let level = |value: &f64| {
        let last = LEVELS.len() - 1;
        let index = number::floor((value / top * number::float_len(LEVELS.len())).ceil());
        let shown = LEVELS.get(index.saturating_sub(1).min(last));
        if *value > 0.0 { shown } else { None }
    };
    let text: String = line
        .iter()
        .map(|value| level(value).copied().unwrap_or(' '))
        .collect();
    out!("  {name:<18} {text} {top:.0}");
}

/// Most notes that are shown.
const MOST_NOTES: usize = 40;

fn notes(scenario: &Scenario, run: &Run) {
    if run.notes.is_empty() {
        out!("  no breaker moved\n");
        return;
    }
    for Noted { proxy, note } in run.notes.iter().take(MOST_NOTES) {
        let at = note.at.saturating_since(world::START).as_secs_f64();
        let upstream = scenario.upstreams.get(note.upstream);
        let state = match note.breaker {
            BreakerPhase::Closed => "closed",
            BreakerPhase::HalfOpen => "half-open",
            BreakerPhase::Open => "open",
        };
        out!(
            "  {at:>8.3} s  proxy {proxy}  {:<12} {state:<10} {}",
            upstream.map_or("", |profile| profile.name.as_str()),
            note.reason
        );
    }
    let more = run.notes.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        out!("  and {more} more");
    }
    out!();
}
