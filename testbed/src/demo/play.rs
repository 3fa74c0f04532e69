//! One stretch of the story, played on both sides at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::SideRecord;
use super::dashboard::{Dashboard, Moment};
use super::disturbance::StoryPart;
use super::machine::{MachineSample, MachineWatch};
use super::side::{Drive, Side};
use super::story::Story;
use crate::envoy::PushOutcome;
use crate::run::RunError;
use crate::variant::Variant;
use tidegate_sim::arrivals::{self, Arrival};

/// The results of one play.
#[derive(Debug)]
pub(super) struct DemoRun {
    pub(super) with: SideRecord,
    pub(super) without: SideRecord,
    pub(super) pushes: Vec<PlayedPush>,
    pub(super) machine: Vec<MachineSample>,
}

/// A push and the verdict on it; `None` if Envoy did not react to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlayedPush {
    at: Duration,
    pub(super) outcome: Option<PushOutcome>,
}

impl DemoRun {
    /// Replaces its own data of this stretch by those of `other`.
    pub(super) fn take_over(&mut self, stretch: StoryPart, other: &Self) {
        self.with.take_over(stretch, &other.with);
        self.without.take_over(stretch, &other.without);
        for push in self.pushes.iter_mut().filter(|one| stretch.holds(one.at)) {
            let again = other.pushes.iter().find(|one| one.at == push.at);
            *push = again.copied().unwrap_or(*push);
        }
    }
}

/// Interval between two redraws of the dashboard.
const REDRAW: Duration = Duration::from_millis(250);
/// Time before the first arrival in which both Envoys become ready.
const HEAD_START: Duration = Duration::from_millis(300);
/// Goodput without shedding counts requests that ended, so the last ones get time to end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Plays a stretch, with its own Envoys and services, and shows it on standard output.
pub(super) async fn play(
    story: &Arc<Story>,
    arrivals: &[Arrival],
    stretch: StoryPart,
) -> Result<DemoRun, RunError> {
    let within = |arrival: &&Arrival| stretch.holds(arrival.at);
    let arrivals: Arc<Vec<Arrival>> = Arc::new(arrivals.iter().filter(within).cloned().collect());
    let (mut with, mut without) = (
        Side::start(story, true, stretch.from).await?,
        Side::start(story, false, stretch.from).await?,
    );
    let begin = Instant::now() + HEAD_START;
    // Times of the story count from this instant.
    let start = begin - stretch.from;
    let machine = MachineWatch::begin(start, begin);
    let drives = [
        with.drive(story, &arrivals, start),
        without.drive(story, &arrivals, start),
    ];
    let mut dashboard = Dashboard::new();
    let mut due = story.pushes.iter().filter(|push| stretch.holds(push.at));
    let mut next = due.next();
    let mut pushes = Vec::new();
    let mut ticks = interval_at(begin, REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let passed = start.elapsed();
        let mut moment = moment(story, passed.min(stretch.to));
        moment.with = with.look(passed).await;
        moment.without = without.look(passed).await;
        dashboard.show(&moment);
        if let Some(push) = next.filter(|push| push.at <= passed) {
            let outcome = with.push(story, push.latency).await;
            let outcome = outcome.map_err(|source| RunError::Envoy {
                variant: Variant::Tidegate,
                source,
            })?;
            pushes.push(PlayedPush {
                at: push.at,
                outcome,
            });
            next = due.next();
        }
        if passed >= stretch.to + LAST_ANSWERS
            || (passed >= stretch.to && drives.iter().all(Drive::is_finished))
        {
            break;
        }
    }
    drop(drives);
    Ok(DemoRun {
        with: with.finish(),
        without: without.finish(),
        pushes,
        machine: machine.samples(),
    })
}

fn moment(story: &Story, now: Duration) -> Moment {
    let capacity = story.capacity();
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
