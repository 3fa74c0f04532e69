//! The demo: one story, told at the same time on an Envoy with the filter and on one without.

mod charts;
pub mod dashboard;
mod live;
pub mod phases;
pub mod report;
mod side;
mod story;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::envoy::PushOutcome;
use crate::run::RunError;
use crate::variant::Variant;
use tidegate_report::table::Table;
use tidegate_sim::arrivals;
use tidegate_sim::number;
use tidegate_sim::record::Record;
use tidegate_sim::series::SeriesSample;

pub use charts::main_chart;
pub use live::{Live, View};
pub use story::{Push, Story, StoryPhase};

use dashboard::{Dashboard, Moment};
use side::{Drive, Side};

/// What one side leaves behind.
#[derive(Debug, Clone)]
pub struct SideRecord {
    /// Every request.
    pub records: Vec<Record>,
    /// Upstream and filter over time.
    pub samples: Vec<SeriesSample>,
    /// CPU time of its Envoy, in seconds.
    pub envoy_cpu_s: f64,
}

/// What the demo leaves behind.
#[derive(Debug, Clone)]
pub struct DemoResult {
    /// The story.
    pub story: Arc<Story>,
    /// The side with the filter.
    pub with: SideRecord,
    /// The side without.
    pub without: SideRecord,
    /// Verdict on each push, in order; none when Envoy took no note of it.
    pub pushes: Vec<Option<PushOutcome>>,
}

/// Distance between two drawings of the dashboard.
const REDRAW: Duration = Duration::from_millis(250);
/// Both Envoys are up before the first arrival is due.
const HEAD_START: Duration = Duration::from_millis(300);
/// Goodput without shedding is judged by what ended, so the last requests get time to end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Tells the story and shows it on standard output.
///
/// # Errors
/// When an upstream or an Envoy cannot be started, or does not survive.
pub async fn tell(story: Story) -> Result<DemoResult, RunError> {
    let story = Arc::new(story);
    let arrivals = Arc::new(arrivals::schedule(&story.scenario));
    let (mut with, mut without) = (
        Side::start(&story, true).await?,
        Side::start(&story, false).await?,
    );
    let start = Instant::now() + HEAD_START;
    let drives = [
        with.drive(&story, &arrivals, start),
        without.drive(&story, &arrivals, start),
    ];
    let mut dashboard = Dashboard::new();
    let mut pushes = Vec::new();
    let mut ticks = interval_at(start, REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let end = story.scenario.duration + LAST_ANSWERS;
    loop {
        ticks.tick().await;
        let passed = start.elapsed();
        let mut moment = moment(&story, passed);
        moment.with = with.look(passed).await;
        moment.without = without.look(passed).await;
        dashboard.show(&moment);
        if let Some(push) = story
            .pushes
            .get(pushes.len())
            .filter(|push| push.at <= passed)
        {
            let outcome = with.push(&story, push.latency).await;
            pushes.push(outcome.map_err(|source| RunError::Envoy {
                variant: Variant::Tidegate,
                source,
            })?);
        }
        if passed >= end
            || (passed >= story.scenario.duration && drives.iter().all(Drive::is_finished))
        {
            break;
        }
    }
    drop(drives);
    let record = |side: Side| {
        let (records, samples, envoy_cpu_s) = side.finish();
        SideRecord {
            records,
            samples,
            envoy_cpu_s,
        }
    };
    Ok(DemoResult {
        story,
        with: record(with),
        without: record(without),
        pushes,
    })
}

fn moment(story: &Story, passed: Duration) -> Moment {
    let capacity = story.capacity();
    let now = passed.min(story.scenario.duration);
    let offered = story
        .scenario
        .clients
        .iter()
        .map(|client| arrivals::rate_at(client, capacity, now))
        .sum();
    Moment {
        passed: now,
        length: story.scenario.duration,
        phase: story
            .phase_at(now)
            .map_or_else(String::new, |phase| phase.title.clone()),
        offered,
        capacity,
        ..Moment::default()
    }
}

/// Headings above the columns of the table by phase, each with the number of columns below it.
const GROUPS: [(&str, u32); 6] = [
    ("", 2),
    ("goodput", 2),
    ("p99 ms", 2),
    ("shed", 2),
    ("errors, late", 2),
    ("reached service", 2),
];

impl DemoResult {
    /// The table by phase: rates per second, `with` and `without` side by side.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut head = vec!["phase", "offered"];
        head.extend(["with", "without"].repeat(GROUPS.len() - 1));
        let whole = |value: f64| format!("{:.0}", value.max(0.0));
        let known = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), whole);
        let (with, without) = self.figures();
        let rows = with.iter().zip(&without).map(|(with, without)| {
            let mut row = vec![with.phase.clone(), whole(with.offered)];
            let pairs = [
                (whole(with.good), whole(without.good)),
                (known(with.p99_ms), known(without.p99_ms)),
                (whole(with.shed), whole(without.shed)),
                (whole(with.failed), whole(without.failed)),
                (whole(with.reached), whole(without.reached)),
            ];
            row.extend(
                pairs
                    .into_iter()
                    .flat_map(|(with, without)| [format!("*{with}"), without]),
            );
            row
        });
        Table::new(&head, rows.collect()).grouped(&GROUPS)
    }

    /// Both sides phase by phase.
    #[must_use]
    pub fn figures(&self) -> (Vec<phases::PhaseFigures>, Vec<phases::PhaseFigures>) {
        (
            phases::figures(&self.story, &self.with.records, &self.with.samples),
            phases::figures(&self.story, &self.without.records, &self.without.samples),
        )
    }

    /// Good answers of a side over the whole story.
    #[must_use]
    pub fn good(&self, side: &SideRecord) -> f64 {
        let is_good = |record: &&Record| record.is_good(self.story.objective_at(record.arrival.at));
        number::float_len(side.records.iter().filter(is_good).count())
    }
}
