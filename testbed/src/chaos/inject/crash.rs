//! Makes VMs trap, by a hook that only the test module has.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::injected::Injected;
use crate::chaos::proxy::{ChaosProxy, WORKERS};
use crate::client::{Call, CallReply, Caller};

/// Enough connections to reach all workers, except once in thousands of attempts.
const CRASHES: u64 = 16;

/// A crashed VM is back after this.
const RELOAD_BOUND: Duration = Duration::from_secs(30);

/// Interval between two polls: each is a burst of calls.
const CRASH_POLL: Duration = Duration::from_millis(200);

/// Crashes the VM of one worker.
pub(super) async fn one(proxy: &ChaosProxy, done: &mut Injected) -> Result<()> {
    crash(proxy, 1, 1, done).await
}

/// Crashes the VMs of all workers.
pub(super) async fn all(proxy: &ChaosProxy, done: &mut Injected) -> Result<()> {
    crash(proxy, CRASHES, u64::from(WORKERS), done).await
}

/// Crashes VMs by `calls` calls at once, and waits until `workers` VMs are replaced and all workers serve.
async fn crash(proxy: &ChaosProxy, calls: u64, workers: u64, done: &mut Injected) -> Result<()> {
    let before = proxy.reloads().await?;
    let panic = Call::get("/")
        .authority("alpha")
        .header("x-tidegate-test", "panic");
    // The callers get an error or nothing.
    at_once(proxy, &panic, calls).await;
    done.calls += calls;
    let begun = Instant::now();
    loop {
        let is_dead = |reply: &CallReply| {
            reply
                .details()
                .is_some_and(|it| it.starts_with("wasm_fail"))
        };
        let replies = at_once(proxy, &Call::get("/").authority("alpha"), CRASHES).await;
        done.calls += CRASHES;
        let do_serve = replies
            .iter()
            .flatten()
            .filter(|reply| !is_dead(reply))
            .count();
        let replaced = proxy.reloads().await?.saturating_sub(before);
        if replaced >= workers && do_serve == replies.len() {
            return Ok(());
        }
        if begun.elapsed() > RELOAD_BOUND {
            bail!(
                "after {RELOAD_BOUND:?} {replaced} VMs were replaced, expected {workers}; {do_serve} of {} calls were served",
                replies.len()
            );
        }
        sleep(CRASH_POLL).await;
    }
}

/// Sends this number of calls at once, each on a connection of its own, which any worker may get.
async fn at_once(proxy: &ChaosProxy, call: &Call, count: u64) -> Vec<Option<CallReply>> {
    let mut under_way = JoinSet::new();
    for _ in 0..count {
        let (caller, call) = (Caller::http1(proxy.addr()), call.clone());
        under_way.spawn(async move { caller.call(&call).await.ok() });
    }
    under_way.join_all().await
}
