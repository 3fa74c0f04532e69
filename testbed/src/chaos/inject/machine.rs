//! Faults of the machine: processors in use by others, a clock that is set.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::injected::Injected;
use crate::chaos::fault::InjectedFault;
use crate::chaos::proxy::ChaosProxy;
use crate::chaos::world::ChaosWorld;
use crate::client::Caller;

/// Niceness of the threads that use the processors.
const NICER: i32 = 5;

/// Range by which the clock is set forward or back, seconds.
const STEP_SECONDS: std::ops::RangeInclusive<i64> = 10..=7_200;

/// Uses all processors twice over for a while.
pub(super) async fn contend(lasts: Duration) -> Result<()> {
    let cores = thread::available_parallelism()?.get();
    let end = Instant::now() + lasts;
    let busy: Vec<_> = (0..2 * cores)
        .map(|_| {
            thread::spawn(move || {
                // On Linux each thread has a niceness of its own. If it cannot be raised, the contention is harder.
                let _ = rustix::process::nice(NICER);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    sleep(lasts).await;
    for thread in busy {
        if block_in_place(|| thread.join()).is_err() {
            bail!("a thread that uses a processor ended early");
        }
    }
    Ok(())
}

/// Sets the clock of Envoy and the control service, and sets it back.
pub(super) async fn step_clock(
    world: &mut ChaosWorld,
    fault: &InjectedFault,
    done: &mut Injected,
) -> Result<()> {
    let mut rng = StdRng::seed_from_u64(fault.seed);
    let size = rng.random_range(STEP_SECONDS);
    let step = if rng.random() { size } else { -size };
    let clock = world.control.clock().context("no clock that can be set")?;
    clock.set(step)?;
    sleep(fault.lasts()).await;
    if !sees_step(&world.proxy, step).await? {
        let wrong = format!("Envoy does not see its clock set by {step} s");
        done.wrong.push(wrong);
    }
    clock.set(0)?;
    done.expect_current(world).await
}

/// Whether, within a few seconds, Envoy's time of day is `step` seconds from the true one.
async fn sees_step(proxy: &ChaosProxy, step: i64) -> Result<bool> {
    /// Envoy's clock for headers moves twice a second.
    const TOLERANCE: i64 = 3;
    const DAY: i64 = 86_400;
    let admin = Caller::http1(proxy.envoy().admin().addr());
    for _ in 0..20 {
        let reply = admin.get("/ready").await?;
        let said = reply.header("date").and_then(time_of_day);
        let said = said.context("no time in Envoy's answer")?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let off = (said - i64::try_from(now.as_secs())? - step + TOLERANCE).rem_euclid(DAY);
        if off <= 2 * TOLERANCE {
            return Ok(true);
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(false)
}

/// Converts `Sun, 22 Nov 2026 16:48:09 GMT` to seconds since midnight.
fn time_of_day(date: &str) -> Option<i64> {
    let mut parts = date.split(' ').nth(4)?.split(':').map(str::parse::<i64>);
    let mut next = || parts.next()?.ok();
    Some(next()? * 3_600 + next()? * 60 + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_is_picked_out() {
        assert_eq!(time_of_day("Sun, 22 Nov 2026 16:48:09 GMT"), Some(60_489));
        assert_eq!(time_of_day("never"), None);
    }
}
