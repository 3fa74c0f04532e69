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
/// What the thread is called.
const NAME: &str = "tidegate";

/// Starts the thread, once.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = thread::Builder::new().name(NAME.to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::IS_VALIDATION;
    use crate::rig::Filter;
    use std::process::Command;

    /// Longest time until a thread has its name.
    const BOUND: Duration = Duration::from_secs(20);

    #[test]
    fn a_process_that_only_validates_has_no_thread_of_the_module() {
        let result = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "ticker::tests::validation"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&result.stdout);
        assert!(
            result.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }

    fn has_thread() -> bool {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let mut names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.any(|name| name.trim() == NAME)
    }

    #[test]
    #[ignore = "run by a_process_that_only_validates_has_no_thread_of_the_module in a process of its own"]
    fn validation() {
        IS_VALIDATION.set(true);
        Filter::new("validated").end();
        assert!(!has_thread());
        IS_VALIDATION.set(false);
        let filter = Filter::new("in-force");
        let started = Instant::now();
        while !has_thread() {
            assert!(started.elapsed() < BOUND);
            thread::yield_now();
        }
        filter.end();
    }
}
