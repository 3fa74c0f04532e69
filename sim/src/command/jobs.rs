//! Runs on several threads, whose outcomes do not depend on the threads.
//!
//! A run is a function of scenario, contender and seed. Threads take the next free job; each
//! outcome goes to its job's place.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::scenario::Scenario;

/// One run to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlayJob<'a> {
    /// What happens.
    pub(super) scenario: &'a Scenario,
    /// The contender that protects the upstream.
    pub(super) contender: &'a ContenderKind,
    /// Number of the repetition, from 0.
    pub(super) repetition: u64,
}

/// All runs of all scenarios with all contenders, `seeds` of each.
pub(super) fn all<'a>(
    scenarios: &'a [Scenario],
    contenders: &'a [ContenderKind],
    seeds: u64,
) -> Vec<PlayJob<'a>> {
    let pairs = scenarios.iter().flat_map(|scenario| {
        contenders
            .iter()
            .map(move |contender| (scenario, contender))
    });
    let of_one = |(scenario, contender)| {
        (0..seeds).map(move |repetition| PlayJob {
            scenario,
            contender,
            repetition,
        })
    };
    pairs.flat_map(of_one).collect()
}

/// Makes every run with `make` on `threads` threads, under a bar; the results are in the order of the jobs.
///
/// # Errors
/// The first error in the order of the jobs; jobs that have not begun by then are skipped.
pub(super) fn play<'a, T: Send, E: Send>(
    jobs: &[PlayJob<'a>],
    threads: usize,
    make: impl Fn(&PlayJob<'a>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let bar = progress(jobs.len());
    let results = run(jobs, threads, |job| {
        bar.set_message(format!("{} {}", job.scenario.name, job.contender.name));
        let result = make(job);
        bar.inc(1);
        result
    });
    bar.finish_and_clear();
    results
}

/// A progress bar on a terminal; nothing otherwise.
pub(super) fn progress(jobs: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(jobs).unwrap_or(u64::MAX));
    let template = "{bar:40} {pos}/{len} runs, {eta} left  {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Does every job on `threads` threads; the results are in the order of the jobs.
///
/// # Errors
/// As [`play`].
pub(super) fn run<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    threads: usize,
    make: impl Fn(&J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::new());
    let work = || {
        while let (index, Some(job)) = take(jobs, &next) {
            let result = make(job);
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            let mut results = results
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            results.push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn take<'j, J>(jobs: &'j [J], next: &AtomicUsize) -> (usize, Option<&'j J>) {
    let index = next.fetch_add(1, Ordering::Relaxed);
    (index, jobs.get(index))
}

#[cfg(test)]
mod tests {
    use tidegate_sim::roster;

    use super::*;

    fn scenario() -> Scenario {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n[[clients]]\nload=[{at='0s',x=1.0}]";
        Scenario::parse(text, "test").unwrap()
    }

    #[test]
    fn results_are_in_the_order_of_the_jobs_whatever_the_threads() {
        let (scenarios, kinds) = ([scenario()], roster::all());
        let jobs = all(&scenarios, &kinds, 50);
        assert_eq!(jobs.len(), 50 * kinds.len());
        let names = |threads| {
            let name = |job: &PlayJob<'_>| Ok::<_, ()>((job.contender.name, job.repetition));
            run(&jobs, threads, name).unwrap()
        };
        let one = names(1);
        assert_eq!(one[0], (kinds[0].name, 0));
        assert_eq!(one[51], (kinds[1].name, 1));
        assert_eq!(names(4), one);
    }

    #[test]
    fn the_first_error_ends_it() {
        let (scenarios, kinds) = ([scenario()], roster::all());
        let jobs = all(&scenarios, &kinds, 10);
        let made = run(&jobs, 1, |job| {
            if job.repetition < 3 {
                Ok(())
            } else {
                Err(job.repetition)
            }
        });
        assert_eq!(made, Err(3));
    }
}
