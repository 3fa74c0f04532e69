//! How the machine treats the demo: whether its timers fire in time, and whether it has the processors to itself.
//!
//! The timers run in the runtime that sends the load, so a late timer means a late request.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_sim::number;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// What the machine did in a short period.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineSample {
    /// End of that period, since the start of the story.
    pub at: Duration,
    /// The greatest delay of a timer.
    pub latest: Duration,
    /// The sum of the delays of all timers, each without the usual delay.
    pub lost: Duration,
    /// Share of the processors' time that the hypervisor took (steal time), 0 to 1.
    pub stolen: f64,
    /// Tasks that ran or waited for a processor at its end, on the whole machine.
    pub runnable: u64,
}

/// Interval between two timers.
const STEP: Duration = Duration::from_millis(10);
/// Length of the period of one sample.
const SPAN: Duration = Duration::from_millis(250);
/// Usual delay: timers have a resolution of a millisecond, and other tasks of the runtime delay them a little more.
const USUAL: Duration = Duration::from_millis(5);

/// Watches the machine until dropped.
#[derive(Debug)]
pub(super) struct MachineWatch {
    task: JoinHandle<()>,
    samples: Arc<Mutex<Vec<MachineSample>>>,
}

impl Drop for MachineWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MachineWatch {
    /// Begins to watch at `begin`, in a story that began at `start`.
    pub(super) fn begin(start: Instant, begin: Instant) -> Self {
        let samples = Arc::<Mutex<Vec<MachineSample>>>::default();
        let kept = Arc::clone(&samples);
        let task = tokio::spawn(async move {
            let mut due = begin;
            let mut next = begin + SPAN;
            let mut sample = MachineSample::default();
            let mut before = ProcessorTimes::read();
            loop {
                sleep_until(due).await;
                let now = Instant::now();
                sample.delayed(now - due);
                if now >= next {
                    let times = ProcessorTimes::read();
                    sample.at = now - start;
                    sample.stolen = times.stolen_since(before);
                    sample.runnable = times.runnable;
                    before = times;
                    let done = std::mem::take(&mut sample);
                    kept.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(done);
                    next = now + SPAN;
                }
                due = now + STEP;
            }
        });
        Self { task, samples }
    }

    /// The samples so far.
    pub(super) fn samples(&self) -> Vec<MachineSample> {
        self.samples
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl MachineSample {
    /// Records that a timer fired this late.
    fn delayed(&mut self, by: Duration) {
        self.latest = self.latest.max(by);
        self.lost += by.saturating_sub(USUAL);
    }
}

/// The totals of all processors in `/proc/stat`; zero on a machine without it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessorTimes {
    /// All time, in ticks.
    all: u64,
    /// Time that the hypervisor took (steal time), in ticks.
    stolen: u64,
    /// Tasks that run or wait for a processor.
    runnable: u64,
}

/// Guest time is part of user time, so only the fields up to this one add up to all time.
const FIELDS: usize = 8;

impl ProcessorTimes {
    fn read() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default()
                .split_whitespace()
                .map_while(|field| field.parse::<u64>().ok())
        };
        Self {
            all: of("cpu ").take(FIELDS).sum(),
            stolen: of("cpu ").nth(FIELDS - 1).unwrap_or_default(),
            runnable: of("procs_running ").next().unwrap_or_default(),
        }
    }

    fn stolen_since(self, before: Self) -> f64 {
        let all = number::float(self.all.saturating_sub(before.all));
        number::float(self.stolen.saturating_sub(before.stolen)) / all.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::until;

    const STAT: &str = "cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\nctxt 9\nprocs_running 6\n";

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let times = ProcessorTimes::parse(STAT);
        assert_eq!((times.all, times.stolen, times.runnable), (1_000, 35, 6));
        let before = ProcessorTimes {
            all: 900,
            stolen: 10,
            runnable: 1,
        };
        assert!((times.stolen_since(before) - 0.25).abs() < 1e-9);
        assert!(times.stolen_since(times).abs() < 1e-9);
    }

    #[test]
    fn a_machine_that_says_nothing_has_stolen_nothing() {
        let times = ProcessorTimes::parse("");
        assert_eq!(times, ProcessorTimes::default());
        assert!(times.stolen_since(times).abs() < 1e-9);
    }

    #[test]
    fn the_delay_that_every_timer_has_is_no_lost_time() {
        let mut sample = MachineSample::default();
        sample.delayed(Duration::from_millis(2));
        sample.delayed(Duration::from_millis(45));
        assert_eq!(sample.latest, Duration::from_millis(45));
        assert_eq!(sample.lost, Duration::from_millis(40));
    }

    #[tokio::test]
    async fn samples_follow_one_another_in_the_time_of_the_story() {
        let start = Instant::now() - Duration::from_secs(20);
        let watch = MachineWatch::begin(start, Instant::now());
        until("two samples", || watch.samples().len() >= 2).await;
        let at: Vec<Duration> = watch.samples().iter().map(|sample| sample.at).collect();
        assert!(at[0] >= Duration::from_secs(20) + SPAN, "{at:?}");
        assert!(
            at.windows(2).all(|pair| pair[1] >= pair[0] + SPAN),
            "{at:?}"
        );
    }
}
