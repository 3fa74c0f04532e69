//! How each fault is done and undone.

mod crash;
mod injected;
mod machine;

use std::time::Instant;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use super::clock::now_us;
use super::fault::{FaultKind, InjectedFault};
use super::policy::{MAX_LIMIT, bad, good};
use super::world::ChaosWorld;

pub use injected::Injected;

use tidegate_sim::profile::{Change, UpstreamMode};

/// Policies that one fault pushes.
const PUSHES: u32 = 100;

/// Percentage of them that are bad.
const BAD_PERCENT: u32 = 40;

/// How many times longer a slow upstream takes.
const SLOWER: u32 = 10;

/// Does a fault, waits as long as it lasts, and undoes it.
///
/// # Errors
/// If it cannot be done or undone, or a process ended unexpectedly.
pub async fn inject(world: &mut ChaosWorld, fault: &InjectedFault) -> Result<Injected> {
    let begun = now_us();
    let mut done = Injected::default();
    act(world, fault, &mut done).await?;
    done.window = (begun, now_us());
    world.control.alive()?;
    Ok(done)
}

async fn act(world: &mut ChaosWorld, fault: &InjectedFault, done: &mut Injected) -> Result<()> {
    let lasts = fault.lasts();
    let backend = world.backend(fault.side)?;
    match fault.kind {
        FaultKind::VmCrashOne => crash::one(&world.proxy, done).await?,
        FaultKind::VmCrashAll => crash::all(&world.proxy, done).await?,
        FaultKind::Pushes => push(world, fault, done).await?,
        FaultKind::UpstreamKilled => {
            backend.kill()?;
            sleep(lasts).await;
            backend.restart().await?;
        }
        FaultKind::UpstreamHung => {
            backend.stop()?;
            sleep(lasts).await;
            backend.go_on()?;
        }
        FaultKind::UpstreamRefusing => {
            backend.change(&Change::mode(UpstreamMode::Refuse))?;
            sleep(lasts).await;
            backend.serve_again().await?;
        }
        FaultKind::UpstreamResetting => {
            backend.change(&Change::mode(UpstreamMode::Reset))?;
            sleep(lasts).await;
            backend.serve_again().await?;
        }
        FaultKind::UpstreamSlow => {
            backend.slow_down(SLOWER)?;
            sleep(lasts).await;
            backend.slow_down(1)?;
        }
        FaultKind::ControlKilled => {
            world.control.kill()?;
            sleep(lasts).await;
            world.control.restart().await?;
            done.expect_current(world).await?;
        }
        FaultKind::DiskFull => fill_disk(world, fault, done).await?,
        FaultKind::HotRestart => {
            world.proxy.hot_restart().await?;
            done.expect_current(world).await?;
        }
        FaultKind::CpuContention => machine::contend(lasts).await?,
        FaultKind::ClockStep => machine::step_clock(world, fault, done).await?,
        FaultKind::Suspended => {
            world.proxy.stop()?;
            sleep(lasts).await;
            world.proxy.go_on()?;
        }
    }
    Ok(())
}

async fn push(world: &mut ChaosWorld, fault: &InjectedFault, done: &mut Injected) -> Result<()> {
    /// The broken file.
    const FILE: &str = "broken.yaml";
    let mut rng = StdRng::seed_from_u64(fault.seed);
    let mut file = false;
    for number in 0..PUSHES {
        let is_bad = rng.random_ratio(BAD_PERCENT, 100);
        if is_bad && rng.random() {
            world.control.file(FILE, Some(&bad(&mut rng)))?;
            file = true;
        } else {
            let (text, expected) = if is_bad {
                (bad(&mut rng), 422)
            } else {
                (good(MAX_LIMIT - rng.random_range(1..100)), 200)
            };
            let status = world.control.put(&text).await?;
            if status != expected {
                let wrong =
                    format!("push {number}: found status {status}, expected {expected}: {text:?}");
                done.wrong.push(wrong);
            }
        }
        sleep(fault.lasts() / PUSHES).await;
    }
    if file {
        world.control.file(FILE, None)?;
    }
    restore(world, done).await
}

/// Puts the policy of the undisturbed part in force again.
async fn restore(world: &mut ChaosWorld, done: &mut Injected) -> Result<()> {
    let status = world.control.put(&good(MAX_LIMIT)).await?;
    if status != 200 {
        let wrong = format!("the policy at the end: found status {status}, expected 200");
        done.wrong.push(wrong);
    }
    done.expect_current(world).await
}

async fn fill_disk(
    world: &mut ChaosWorld,
    fault: &InjectedFault,
    done: &mut Injected,
) -> Result<()> {
    let control = &mut world.control;
    control.fill_disk(true)?;
    let begun = Instant::now();
    let status = control.put(&good(MAX_LIMIT - 100)).await?;
    if status != 507 {
        let wrong = format!("a push to a full disk: found status {status}, expected 507");
        done.wrong.push(wrong);
    }
    if !control.keeps_last().await? {
        let wrong = "a push to a full disk changed what is in force";
        done.wrong.push(wrong.to_owned());
    }
    sleep(fault.lasts().saturating_sub(begun.elapsed())).await;
    control.fill_disk(false)?;
    restore(world, done).await
}
