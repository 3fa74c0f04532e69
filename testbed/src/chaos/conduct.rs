//! One run: an undisturbed part, then fault after fault, with a check of the invariants after each.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::clock::WallClock;
use super::fault::FaultKind;
use super::invariants::{Broken, Undisturbed};
use super::outcome::FaultOutcome;
use super::plan::plan;
use super::stage::ChaosStage;
use super::world::ChaosWorld;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct ChaosSettings {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Approximate length.
    pub length: Duration,
    /// Kinds of faults.
    pub kinds: Vec<FaultKind>,
    /// The control service's binary.
    pub service: PathBuf,
    /// Folder for the logs of faults that failed.
    pub logs: PathBuf,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChaosRun {
    /// Its seed.
    pub seed: u64,
    /// Its requested length, seconds.
    pub ordered_s: u64,
    /// Its requested kinds.
    pub kinds: Vec<FaultKind>,
    /// How long it took, seconds.
    pub took_s: u64,
    /// What the undisturbed part showed.
    pub undisturbed: Undisturbed,
    /// The result of each fault.
    pub outcomes: Vec<FaultOutcome>,
    /// Planned faults that did not begin in time.
    pub not_begun: usize,
    /// Kinds that this machine cannot play, and why.
    pub left_out: Vec<(FaultKind, String)>,
}

/// The factor by which a run may exceed its requested length until every kind has occurred.
const OVERTIME: f64 = 1.5;

/// Makes a run; `say` gets a line about each fault.
///
/// # Errors
/// If the processes cannot be started, or do not serve before the first fault.
pub async fn conduct(order: &ChaosSettings, say: impl Fn(&str)) -> Result<ChaosRun> {
    let begun = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix("tidegate-chaos-")
        .tempdir()?;
    let (clock, left_out, kinds) = what_can_be_had(order, WallClock::new(folder.path()));
    for (kind, reason) in &left_out {
        say(&format!("left out: {kind}: {reason}"));
    }
    let world = ChaosWorld::start(&order.service, folder.path(), clock).await?;
    let mut stage = ChaosStage::new(world, order.seed);
    stage.begin().await.context("before any fault")?;
    let steps = plan(order.seed, &kinds, order.length);
    say(&format!(
        "seed {}, {} faults; {}",
        order.seed,
        steps.len(),
        describe(stage.undisturbed())
    ));
    let mut run = ChaosRun {
        seed: order.seed,
        ordered_s: order.length.as_secs(),
        kinds: order.kinds.clone(),
        took_s: 0,
        undisturbed: stage.undisturbed().clone(),
        outcomes: Vec::new(),
        not_begun: 0,
        left_out,
    };
    for (index, step) in steps.iter().enumerate() {
        let came = |kind: &FaultKind| run.outcomes.iter().any(|it| it.fault.kind == *kind);
        let may_take = if kinds.iter().all(came) {
            order.length
        } else {
            order.length.mul_f64(OVERTIME)
        };
        if begun.elapsed() > may_take {
            run.not_begun = steps.len() - index;
            say(&format!(
                "{} faults are not begun: no time is left",
                run.not_begun
            ));
            break;
        }
        let outcome = stage.play(step).await;
        let at = begun.elapsed().as_secs_f64();
        let number = index + 1;
        say(&format!(
            "{at:7.1} s  {number:>3}/{}  {}",
            steps.len(),
            line(&outcome)
        ));
        if !outcome.broken.is_empty() {
            stage.keep_logs(&order.logs, number)?;
        }
        let is_over = outcome.facts.is_none();
        run.outcomes.push(outcome);
        if is_over {
            run.not_begun = steps.len() - number;
            break;
        }
    }
    run.took_s = begun.elapsed().as_secs();
    Ok(run)
}

/// The clock, the kinds that this machine cannot play, and those that it can.
fn what_can_be_had(
    order: &ChaosSettings,
    clock: Result<WallClock>,
) -> (Option<WallClock>, Vec<(FaultKind, String)>, Vec<FaultKind>) {
    let mut kinds = order.kinds.clone();
    match clock {
        Ok(clock) => (Some(clock), Vec::new(), kinds),
        Err(error) => {
            let reason = format!("no clock that can be set: {error:#}");
            let is_asked_for = kinds.contains(&FaultKind::ClockStep);
            kinds.retain(|kind| *kind != FaultKind::ClockStep);
            let left_out = is_asked_for.then_some((FaultKind::ClockStep, reason));
            (None, left_out.into_iter().collect(), kinds)
        }
    }
}

fn describe(undisturbed: &Undisturbed) -> String {
    let limits = undisturbed
        .limits
        .iter()
        .map(|(side, (least, most))| format!("{} limit {least} to {most}", side.name()));
    let limits: Vec<String> = limits.collect();
    format!("undisturbed: {}, {:?}", limits.join(", "), undisturbed.held)
}

fn line(outcome: &FaultOutcome) -> String {
    let ms =
        |time: Option<u64>| time.map_or_else(|| "never".to_owned(), |time| format!("{time} ms"));
    let mut text = format!("{:<36}", outcome.fault.to_string());
    if let Some(facts) = &outcome.facts {
        let account = &facts.stretch.account;
        text += &format!(
            "recovered in {:>8}, at rest in {:>7}; {} sent, {} shed, {} harmed, {} cut, {} late",
            ms(facts.recovered_ms),
            ms(facts.rested_ms),
            account.sent,
            account.shed,
            account.harmed,
            account.cut,
            account.late,
        );
    }
    for Broken { invariant, found } in &outcome.broken {
        text += &format!("\n      FAILED: {invariant}: {found}");
    }
    text
}
