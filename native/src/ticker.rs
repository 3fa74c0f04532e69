//! The thread of the module that decides: ten rounds a second. Only [`snapshot`](crate::snapshot) has others, for each write one.
//!
//! ```text
//!  round begins ... busy workers do their upkeep in their next hook ... GRACE ... idle workers' upkeep, decisions ... rest
//! ```
//!
//! It is started with the first configuration and never joined: Envoy destroys configurations on worker threads as well.

use core::time::Duration;
use std::sync::Once;
use std::thread;
use std::time::Instant;

use tidegate_worker::plugin::TICK;

use crate::abi::{log, log_level};
use crate::{guard, registry};

/// How long busy workers have for their own upkeep.
const GRACE: Duration = Duration::from_millis(5);
/// Starts the thread, once.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = thread::Builder::new().name("tidegate".to_owned());
        if let Err(error) = thread.spawn(run) {
            log(
                log_level::ERROR,
                &format!("tidegate: no thread for decisions ({error}): limits stay as they are"),
            );
        }
    });
}

fn run() {
    let mut next = Instant::now() + TICK;
    loop {
        registry::wait_for_a_configuration();
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // Whatever panics there, the next round comes.
        guard::call("round", (), round);
        guard::call("round", (), registry::schedule_publishing);
        // After a pause the rounds go on from now: none is made up for.
        next = (next + TICK).max(Instant::now());
    }
}

/// It has the plugins only as long as it lasts: one that has ended goes when nobody has it.
fn round() {
    let plugins = registry::plugins();
    for plugin in &plugins {
        plugin.begin_round();
    }
    thread::sleep(GRACE);
    for plugin in &plugins {
        guard::call("tick", (), || plugin.end_round());
    }
    for plugin in &plugins {
        guard::call("tick", (), || plugin.snapshot().write_if_due());
    }
}
