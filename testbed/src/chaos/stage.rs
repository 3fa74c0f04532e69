//! The world under load, from one rest to the next.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::time::sleep;

use super::account::{Account, RequestEvidence};
use super::clock::now_us;
use super::fault::{InjectedFault, UpstreamSide};
use super::inject::{Injected, inject};
use super::invariants::{Broken, FaultFacts, Stretch, Undisturbed, check, is_in_band};
use super::load::Load;
use super::outcome::FaultOutcome;
use super::plan::ChaosStep;
use super::proxy::{Guards, Shown};
use super::world::{ChaosWorld, HeldResources};

/// Load before the undisturbed part, until limits are learned and connections open.
const WARM_UP: Duration = Duration::from_secs(5);

/// Length of the undisturbed part.
const UNDISTURBED: Duration = Duration::from_secs(4);

/// Interval between two polls.
const POLL: Duration = Duration::from_millis(200);

/// The world recovers from every fault within this.
const RECOVERY_BOUND: Duration = Duration::from_secs(60);

/// Callers and the filter have nothing in flight within this time. Requests that died with a VM are written off by a judgment
/// over many readings, one a second at rest.
const REST_BOUND: Duration = Duration::from_secs(45);

/// The load has recovered when all requests that ended in this time were answered.
const WELL_FOR: Duration = Duration::from_secs(1);

/// The least number of requests that must end in that time.
const WELL_REQUESTS: usize = 40;

/// Length of the undisturbed stretch after each fault.
const PROOF: Duration = Duration::from_secs(1);

/// Closing sockets have closed within this time.
const CLOSE_BOUND: Duration = Duration::from_secs(5);

/// The world under load.
pub(super) struct ChaosStage {
    world: ChaosWorld,
    load: Load,
    undisturbed: Undisturbed,
    /// What Envoy showed at the last rest.
    rested: Shown,
}

impl ChaosStage {
    /// A world with callers that start now; the times of their requests are drawn from `seed`.
    pub(super) fn new(world: ChaosWorld, seed: u64) -> Self {
        let load = Load::start(world.proxy.addr(), seed);
        Self {
            world,
            load,
            undisturbed: Undisturbed::default(),
            rested: Shown::default(),
        }
    }

    /// What the undisturbed part showed.
    pub(super) const fn undisturbed(&self) -> &Undisturbed {
        &self.undisturbed
    }

    /// The undisturbed part.
    pub(super) async fn begin(&mut self) -> Result<()> {
        sleep(WARM_UP).await;
        let from = now_us();
        let begun = Instant::now();
        let mut limits = Vec::new();
        while begun.elapsed() < UNDISTURBED {
            limits.push(self.world.proxy.shown().await?);
            sleep(POLL).await;
        }
        for side in UpstreamSide::ALL {
            let seen = limits.iter().filter_map(|shown| shown.guards.get(&side));
            let seen = seen.map(|guard| guard.limit);
            let band = seen.fold((u64::MAX, 0), |(least, most), limit| {
                (least.min(limit), most.max(limit))
            });
            self.undisturbed.limits.insert(side, band);
        }
        let (all, answered) = self.load.lately(from);
        if all == 0 || answered < all {
            bail!("found {answered} of {all} requests answered, expected all");
        }
        let (rested_ms, shown) = self.rest().await?;
        rested_ms.context("requests stay in flight")?;
        self.rested = shown;
        self.load.hang_up();
        sleep(POLL).await;
        self.undisturbed.held = self.world.held()?;
        // Requests before this belong to no fault.
        drop(self.load.take());
        self.world.answered()?;
        self.load.resume();
        Ok(())
    }

    /// Injects a fault and observes its aftermath.
    pub(super) async fn play(&mut self, step: &ChaosStep) -> FaultOutcome {
        sleep(step.before).await;
        let fault = step.fault;
        match self.facts(fault).await {
            Ok(facts) => FaultOutcome {
                fault,
                broken: check(&facts, &self.undisturbed),
                facts: Some(facts),
            },
            Err(error) => FaultOutcome {
                fault,
                facts: None,
                broken: vec![Broken {
                    invariant: "the processes can be asked".to_owned(),
                    found: format!("{error:#}"),
                }],
            },
        }
    }

    async fn facts(&mut self, fault: InjectedFault) -> Result<FaultFacts> {
        let done = inject(&mut self.world, &fault).await?;
        let undone = Instant::now();
        let (recovered_ms, guards) = self.recover(undone).await?;
        let (rested_ms, stretch) = self.stretch(Some((fault, &done))).await?;
        let (shown, held) = (self.rested.clone(), self.held().await?);
        self.load.resume();
        sleep(PROOF).await;
        let (_, proof) = self.stretch(None).await?;
        self.load.resume();
        let (begun, ended) = done.window;
        Ok(FaultFacts {
            fault,
            took_ms: (ended - begun) / 1_000,
            recovered_ms,
            guards,
            rested_ms,
            shown,
            held,
            stretch,
            proof,
            wrong: done.wrong,
        })
    }

    /// Waits until breakers are closed, limits are back in their bands and the load is well; returns how long that took in
    /// milliseconds, and what the filter showed then.
    async fn recover(&self, undone: Instant) -> Result<(Option<u64>, Guards)> {
        let well_us = u64::try_from(WELL_FOR.as_micros())?;
        let mut guards = Guards::new();
        while undone.elapsed() < RECOVERY_BOUND {
            let shown = self.world.proxy.shown().await?;
            guards = shown.guards;
            let is_sound = guards.iter().all(|(side, guard)| {
                let band = self.undisturbed.limits.get(side);
                guard.breaker == 0 && band.is_some_and(|(least, _)| is_in_band(guard.limit, *least))
            });
            let (all, answered) = self.load.lately(now_us().saturating_sub(well_us));
            let is_well = undone.elapsed() >= WELL_FOR && all >= WELL_REQUESTS && all == answered;
            if is_sound && is_well {
                return Ok((Some(u64::try_from(undone.elapsed().as_millis())?), guards));
            }
            sleep(POLL).await;
        }
        Ok((None, guards))
    }

    /// Pauses the load, and counts what happened since the last rest.
    async fn stretch(
        &mut self,
        fault: Option<(InjectedFault, &Injected)>,
    ) -> Result<(Option<u64>, Stretch)> {
        let before = self.rested.counters;
        let (rested_ms, shown) = self.rest().await?;
        self.rested = shown;
        let records = self.load.take();
        let answers = self.world.answered()?;
        let account = Account::of(RequestEvidence {
            records: &records,
            answers: &answers,
            fault: fault.map(|(fault, done)| (fault, done.window)),
        });
        let stretch = Stretch {
            before,
            after: self.rested.counters,
            account,
            calls: fault.map_or(0, |(_, done)| done.calls),
        };
        Ok((rested_ms, stretch))
    }

    /// Pauses the load, and waits until callers and filter have nothing in flight and everything is published; returns how
    /// many milliseconds the filter took longer than the callers.
    async fn rest(&self) -> Result<(Option<u64>, Shown)> {
        self.load.pause();
        // A caller that has just checked for a pause may still send.
        sleep(Duration::from_millis(20)).await;
        let paused = Instant::now();
        while self.load.in_flight() > 0 {
            if paused.elapsed() > REST_BOUND {
                bail!(
                    "{} callers wait still after {REST_BOUND:?}",
                    self.load.in_flight()
                );
            }
            sleep(Duration::from_millis(10)).await;
        }
        let ended = Instant::now();
        let mut last = self.world.proxy.shown().await?;
        while ended.elapsed() < REST_BOUND {
            // Longer than the filter takes to publish.
            sleep(POLL).await;
            let shown = self.world.proxy.shown().await?;
            let mut guards = shown.guards.values();
            let is_empty = guards.all(|guard| guard.in_flight == 0 && guard.streams == 0);
            if is_empty && shown.counters == last.counters {
                return Ok((Some(u64::try_from(ended.elapsed().as_millis())?), shown));
            }
            last = shown;
        }
        Ok((None, last))
    }

    /// The resources that the processes hold once callers have closed their connections.
    async fn held(&self) -> Result<HeldResources> {
        self.load.hang_up();
        let begun = Instant::now();
        loop {
            sleep(POLL).await;
            let held = self.world.held()?;
            let is_done = self.undisturbed.bounds(&held) || begun.elapsed() > CLOSE_BOUND;
            if is_done {
                return Ok(held);
            }
        }
    }

    /// Keeps the logs of Envoy and the control service.
    pub(super) fn keep_logs(&self, folder: &Path, number: usize) -> Result<()> {
        fs::create_dir_all(folder)?;
        let file = |who: &str| folder.join(format!("{number}-{who}.log"));
        fs::write(file("envoy"), self.world.proxy.envoy().log())?;
        fs::write(file("control"), self.world.control.log())?;
        Ok(())
    }
}
