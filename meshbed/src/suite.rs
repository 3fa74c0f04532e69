//! Cases that share one world.
//!
//! An API server takes seconds to start and hundreds of megabytes, so one serves all cases of a test binary; cases are
//! separated by namespace. Cargo's own harness cannot end what all tests share. Here the world is started before the first
//! case and ended after the last one, also when cases fail and when the run is interrupted. Names on the command line select
//! cases as in any other test.

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Conclusion, Trial};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::leavings;

type CaseBody<W> = fn(Arc<W>) -> Pin<Box<dyn Future<Output = ()>>>;

/// One case: its name states a fact, and its body proves it. [`cases!`](crate::cases) makes it.
pub struct Case<W> {
    name: &'static str,
    body: CaseBody<W>,
}

impl<W> Case<W> {
    /// A case that fails when `body` panics.
    pub const fn new(name: &'static str, body: CaseBody<W>) -> Self {
        Self { name, body }
    }
}

/// A list of cases from the paths of async functions that take the world.
#[macro_export]
macro_rules! cases {
    ($($case:path),* $(,)?) => {
        vec![$($crate::suite::Case::new(stringify!($case), |world| Box::pin($case(world)))),*]
    };
}

/// Runs the cases that the command line names, and reports how many passed.
///
/// If a case failed, the logs of the servers are copied to `out/logs/`.
pub fn play<W: Send + Sync + 'static>(
    start: impl AsyncFnOnce() -> anyhow::Result<W>,
    cases: Vec<Case<W>>,
) -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("start threads: {error}")),
    };
    if arguments.list {
        libtest_mimic::run(&arguments, trials(&cases, &runtime, None)).exit();
    }
    let world = match runtime.block_on(started_or_interrupted(start)) {
        Ok(world) => Arc::new(world),
        Err(error) => return fail(&format!("{error:#}")),
    };
    runtime.spawn(async {
        interrupted().await;
        leavings::sweep();
        std::process::exit(130);
    });

    let conclusion = libtest_mimic::run(&arguments, trials(&cases, &runtime, Some(&world)));
    if conclusion.has_failed() {
        leavings::keep_all();
    }
    // Ends the servers before the last line is printed.
    drop(world);
    drop(runtime);
    conclude(&conclusion)
}

async fn started_or_interrupted<W>(
    start: impl AsyncFnOnce() -> anyhow::Result<W>,
) -> anyhow::Result<W> {
    tokio::select! {
        world = start() => world,
        () = interrupted() => Err(anyhow::anyhow!("interrupted")),
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() {
    let Ok(mut asked) = signal(SignalKind::terminate()) else {
        return tokio::signal::ctrl_c().await.unwrap_or_default();
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = asked.recv() => (),
    }
}

fn trials<W: Send + Sync + 'static>(
    cases: &[Case<W>],
    runtime: &Runtime,
    world: Option<&Arc<W>>,
) -> Vec<Trial> {
    let trial = |case: &Case<W>| {
        let (body, handle, world) = (case.body, runtime.handle().clone(), world.cloned());
        Trial::test(case.name, move || {
            if let Some(world) = world {
                handle.block_on(body(world));
            }
            Ok(())
        })
    };
    cases.iter().map(trial).collect()
}

fn conclude(conclusion: &Conclusion) -> ExitCode {
    println!(
        "{} passed, {} failed",
        conclusion.num_passed, conclusion.num_failed
    );
    // A run without any case proves nothing.
    if conclusion.has_failed() || conclusion.num_passed == 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}\n0 passed, 1 failed");
    ExitCode::FAILURE
}
