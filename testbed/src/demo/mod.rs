//! The demo: one story, played at the same time on an Envoy with the filter and on one without.

mod charts;
pub mod dashboard;
pub mod disturbance;
mod live;
pub mod machine;
pub mod phases;
mod play;
pub mod report;
mod side;
mod splice;
mod story;

use std::sync::Arc;
use std::time::Duration;

use crate::envoy::PushOutcome;
use crate::run::RunError;
use tidegate_report::table::Table;
use tidegate_sim::arrivals::{self, Arrival};
use tidegate_sim::number;
use tidegate_sim::record::Record;
use tidegate_sim::series::SeriesSample;

pub use charts::main_chart;
pub use live::{Live, View};
pub use story::{Push, Story, StoryPhase};

use disturbance::{Disturbance, StoryPart, again, disturbances};
use play::{DemoRun, play};

/// The results of one side.
#[derive(Debug, Clone)]
pub struct SideRecord {
    /// Every request.
    pub records: Vec<Record>,
    /// Upstream and filter over time.
    pub samples: Vec<SeriesSample>,
    /// CPU time of its Envoy, in seconds.
    pub envoy_cpu_s: f64,
}

/// The results of the demo.
#[derive(Debug, Clone)]
pub struct DemoResult {
    /// The story.
    pub story: Arc<Story>,
    /// The side with the filter.
    pub with: SideRecord,
    /// The side without.
    pub without: SideRecord,
    /// Verdict on each push, in order; `None` if Envoy did not react to it.
    pub pushes: Vec<Option<PushOutcome>>,
    /// Disturbed phases that a repetition replaced.
    pub repeated: Vec<Disturbance>,
    /// Phases that were disturbed in the repetitions too.
    pub disturbed: Vec<Disturbance>,
}

/// How often disturbed phases are repeated.
const REPETITIONS: u32 = 2;

/// Plays the story and shows it on standard output. Disturbed phases are repeated; a repetition replaces the first play if
/// the machine was quiet.
///
/// # Errors
/// If an upstream or an Envoy cannot be started, or ends early.
pub async fn tell(story: Story) -> Result<DemoResult, RunError> {
    told_by(story, play).await
}

/// The same, with what plays a stretch.
async fn told_by(
    story: Story,
    play: impl AsyncFn(&Arc<Story>, &[Arrival], StoryPart) -> Result<DemoRun, RunError>,
) -> Result<DemoResult, RunError> {
    let story = Arc::new(story);
    let arrivals = arrivals::schedule(&story.scenario);
    let whole = StoryPart {
        from: Duration::ZERO,
        to: story.scenario.duration,
    };
    let mut told = play(&story, &arrivals, whole).await?;
    let mut disturbed = disturbances(&story, &told.machine);
    let mut repeated = Vec::new();
    for _ in 0..REPETITIONS {
        let mut still = Vec::new();
        for stretch in again(&story, &disturbed) {
            let affected: Vec<&Disturbance> = disturbed
                .iter()
                .filter(|one| stretch.holds(one.stretch.from))
                .collect();
            announce(&affected, stretch);
            let other = play(&story, &arrivals, stretch).await?;
            let found = disturbances(&story, &other.machine);
            for first in affected {
                match found.iter().find(|one| one.phase == first.phase) {
                    Some(again) => still.push(again.clone()),
                    None => {
                        told.take_over(first.stretch, &other);
                        repeated.push(first.clone());
                    }
                }
            }
        }
        disturbed = still;
    }
    Ok(DemoResult {
        pushes: told.pushes.into_iter().map(|push| push.outcome).collect(),
        with: told.with,
        without: told.without,
        story,
        repeated,
        disturbed,
    })
}

/// Prints why a stretch is repeated.
fn announce(disturbed: &[&Disturbance], stretch: StoryPart) {
    println!("\nThe machine disturbed the demo:");
    disturbed.iter().for_each(|one| println!("  {one}"));
    println!(
        "Seconds {:.0} to {:.0} are played again.\n",
        stretch.from.as_secs_f64(),
        stretch.to.as_secs_f64()
    );
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tidegate_sim::record::Answer;

    use super::machine::MachineSample;
    use super::*;

    /// A play with one request a second, whose latency is the number of the play. Timers were late in these seconds.
    fn played(number: usize, stretch: StoryPart, late: &[u64]) -> DemoRun {
        let seconds = stretch.from.as_secs()..stretch.to.as_secs();
        let record = |second| Record {
            arrival: Arrival {
                at: Duration::from_secs(second),
                client: 0,
                path: "/".into(),
                criticality: None,
                upload: None,
                reads_for: None,
            },
            answer: Answer::Ok,
            latency: Duration::from_millis(number as u64),
            attempts: 1,
            sheds: 0,
        };
        let sample = |second| MachineSample {
            at: Duration::from_secs(second),
            latest: Duration::from_millis(if late.contains(&second) { 500 } else { 0 }),
            ..MachineSample::default()
        };
        let side = SideRecord {
            records: seconds.clone().map(record).collect(),
            samples: Vec::new(),
            envoy_cpu_s: 0.0,
        };
        DemoRun {
            with: side.clone(),
            without: side,
            pushes: Vec::new(),
            machine: seconds.map(sample).collect(),
        }
    }

    /// Tells the story with plays in which timers were late in these seconds, and returns the stretches that were played.
    async fn told(plays: &[&[u64]]) -> (DemoResult, Vec<(u64, u64)>) {
        let story = Story::told_in(Duration::from_secs(60)).unwrap();
        let stretches = RefCell::new(Vec::new());
        let told = told_by(story, async |_, _, stretch| {
            let mut stretches = stretches.borrow_mut();
            let late = plays[stretches.len()];
            stretches.push((stretch.from.as_secs(), stretch.to.as_secs()));
            Ok(played(stretches.len(), stretch, late))
        });
        let told = told.await.unwrap();
        (told, stretches.into_inner())
    }

    fn phases_of(disturbances: &[Disturbance]) -> Vec<&str> {
        disturbances.iter().map(|one| one.phase.as_str()).collect()
    }

    /// The play from which each second comes.
    fn origins(side: &SideRecord) -> Vec<u128> {
        let mut records: Vec<&Record> = side.records.iter().collect();
        records.sort_by_key(|record| record.arrival.at);
        let latencies = records.iter().map(|record| record.latency.as_millis());
        latencies.collect()
    }

    #[tokio::test]
    async fn a_quiet_story_is_played_once() {
        let (told, stretches) = told(&[&[]]).await;
        assert_eq!(stretches, [(0, 60)]);
        assert!(told.repeated.is_empty() && told.disturbed.is_empty());
    }

    #[tokio::test]
    async fn a_quiet_repetition_replaces_a_disturbed_phase() {
        let (told, stretches) = told(&[&[10], &[]]).await;
        assert_eq!(
            stretches,
            [(0, 60), (0, 22)],
            "the phase before leads to it"
        );
        assert_eq!(phases_of(&told.repeated), ["overload"]);
        assert!(told.disturbed.is_empty());
        let expected = [vec![1; 8], vec![2; 14], vec![1; 38]].concat();
        assert_eq!(origins(&told.with), expected, "seconds 8 to 22 are new");
        assert_eq!(origins(&told.without), expected);
    }

    #[tokio::test]
    async fn a_lead_in_that_was_disturbed_is_not_taken_over() {
        let (told, _) = told(&[&[10], &[3]]).await;
        assert_eq!(phases_of(&told.repeated), ["overload"]);
        assert!(told.disturbed.is_empty());
        assert_eq!(origins(&told.with)[3], 1);
    }

    #[tokio::test]
    async fn of_two_disturbed_phases_only_the_one_that_stays_so_is_played_a_third_time() {
        let (told, stretches) = told(&[&[10, 46], &[], &[46], &[]]).await;
        let (overload, spike) = ((0, 22), (38, 50));
        assert_eq!(stretches, [(0, 60), overload, spike, spike]);
        assert_eq!(phases_of(&told.repeated), ["overload", "spike"]);
        assert!(told.disturbed.is_empty());
    }

    #[tokio::test]
    async fn a_phase_that_stays_disturbed_is_told_after_two_repetitions() {
        let (told, stretches) = told(&[&[10], &[10], &[11]]).await;
        assert_eq!(stretches, [(0, 60), (0, 22), (0, 22)]);
        assert!(told.repeated.is_empty());
        assert_eq!(phases_of(&told.disturbed), ["overload"]);
        assert_eq!(origins(&told.with), [1; 60]);
    }
}
