//! Which phases the machine disturbed, and which stretches are repeated for them.

use std::fmt;
use std::time::Duration;

use super::machine::MachineSample;
use super::story::Story;
use tidegate_sim::number;

/// A phase whose figures describe the machine rather than the two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Disturbance {
    /// Name of the phase.
    pub phase: String,
    /// When the phase is played.
    pub stretch: StoryPart,
    /// The greatest delay of a timer.
    pub latest: Duration,
    /// Share of the phase by which timers were late, 0 to 1.
    pub lost: f64,
    /// Share of the processors' time that the hypervisor took (steal time), 0 to 1.
    pub stolen: f64,
    /// Mean number of tasks that ran or waited for a processor.
    pub runnable: f64,
}

/// A quarter of the tighter objective. On a quiet machine with two cores timers are at most 14 ms late; with twelve times as
/// many busy processes as cores, 24 ms.
const MOST_LATE: Duration = Duration::from_millis(50);
/// Greatest share of a phase by which timers may be late. With busy processes it is 1 %, and the figures do not change.
const MOST_LOST: f64 = 0.05;
/// Greatest share of steal time. Beyond it the services have less capacity than the story states.
const MOST_STOLEN: f64 = 0.05;

impl Disturbance {
    /// Judges a phase by its samples; `None` if there are none or they are good.
    ///
    /// The number of runnable tasks may explain a disturbance, but does not make one: work of lower priority waits without
    /// harm.
    fn of(phase: &str, stretch: StoryPart, samples: &[MachineSample]) -> Option<Self> {
        let length = stretch.to - stretch.from;
        let count = number::float_len(samples.len());
        let lost: Duration = samples.iter().map(|sample| sample.lost).sum();
        let found = Self {
            phase: phase.to_owned(),
            stretch,
            latest: samples.iter().map(|sample| sample.latest).max()?,
            lost: lost.as_secs_f64() / length.as_secs_f64(),
            stolen: samples.iter().map(|sample| sample.stolen).sum::<f64>() / count,
            runnable: samples
                .iter()
                .map(|sample| number::float(sample.runnable))
                .sum::<f64>()
                / count,
        };
        let is_disturbed =
            found.latest >= MOST_LATE || found.lost > MOST_LOST || found.stolen > MOST_STOLEN;
        is_disturbed.then_some(found)
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: timers up to {} ms late, for {:.0} % of the time; {:.0} % of the CPU time stolen; {:.1} runnable tasks on average",
            self.phase,
            self.latest.as_millis(),
            self.lost * 100.0,
            self.stolen * 100.0,
            self.runnable
        )
    }
}

/// The disturbed phases, in order.
#[must_use]
pub fn disturbances(story: &Story, samples: &[MachineSample]) -> Vec<Disturbance> {
    let of_phase = |(phase, end): (&super::StoryPhase, Duration)| {
        let stretch = StoryPart {
            from: phase.at,
            to: end,
        };
        let within: Vec<MachineSample> = samples
            .iter()
            .filter(|sample| stretch.holds(sample.at))
            .copied()
            .collect();
        Disturbance::of(&phase.name, stretch, &within)
    };
    story.stretches().filter_map(of_phase).collect()
}

/// A part of the story that is played without a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoryPart {
    /// Beginning.
    pub from: Duration,
    /// End.
    pub to: Duration,
}

impl StoryPart {
    /// Whether a time is in it.
    #[must_use]
    pub fn holds(&self, at: Duration) -> bool {
        self.from <= at && at < self.to
    }
}

/// The stretches to repeat for these disturbances: each phase with its lead-in; stretches that overlap or touch are joined.
#[must_use]
pub fn again(story: &Story, disturbances: &[Disturbance]) -> Vec<StoryPart> {
    let mut stretches: Vec<StoryPart> = Vec::new();
    for (phase, end) in story.stretches() {
        if !disturbances.iter().any(|one| one.phase == phase.name) {
            continue;
        }
        let from = story.lead_in(phase);
        match stretches.last_mut() {
            Some(last) if from <= last.to => {
                last.from = last.from.min(from);
                last.to = end;
            }
            _ => stretches.push(StoryPart { from, to: end }),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story() -> Story {
        Story::told_in(Duration::from_secs(60)).unwrap()
    }

    /// Quiet samples of the whole story.
    fn quiet() -> Vec<MachineSample> {
        let sample = |quarter: u64| MachineSample {
            at: Duration::from_millis(quarter * 250),
            latest: Duration::from_millis(12),
            runnable: 3,
            ..MachineSample::default()
        };
        (1..240).map(sample).collect()
    }

    /// The samples of the seconds `from` to `to`, changed.
    fn changed(from: u64, to: u64, change: impl Fn(&mut MachineSample)) -> Vec<MachineSample> {
        let mut samples = quiet();
        samples
            .iter_mut()
            .filter(|sample| (from..to).contains(&sample.at.as_secs()))
            .for_each(change);
        samples
    }

    fn names(samples: &[MachineSample]) -> Vec<String> {
        let found = disturbances(&story(), samples);
        found.into_iter().map(|one| one.phase).collect()
    }

    #[test]
    fn a_quiet_machine_disturbs_nothing() {
        assert!(names(&quiet()).is_empty());
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn one_long_stall_disturbs_its_phase_alone() {
        let stall = |sample: &mut MachineSample| sample.latest = Duration::from_millis(50);
        assert_eq!(names(&changed(10, 11, stall)), ["overload"]);
        let hiccup = |sample: &mut MachineSample| sample.latest = Duration::from_millis(49);
        assert!(names(&changed(10, 11, hiccup)).is_empty());
    }

    #[test]
    fn many_short_delays_add_up() {
        let slow = |sample: &mut MachineSample| sample.lost = Duration::from_millis(50);
        // 4 of 14 seconds at a fifth: 5.7 %. 3 seconds: 4.3 %.
        assert_eq!(names(&changed(10, 14, slow)), ["overload"]);
        assert!(names(&changed(10, 13, slow)).is_empty());
    }

    #[test]
    fn stolen_time_disturbs_and_a_run_queue_does_not() {
        let stolen = |sample: &mut MachineSample| sample.stolen = 0.3;
        assert_eq!(
            names(&changed(45, 60, stolen)),
            ["spike", "push", "tighter"]
        );
        let queue = |sample: &mut MachineSample| sample.runnable = 30;
        assert!(names(&changed(0, 60, queue)).is_empty());
    }

    #[test]
    fn a_disturbance_says_what_was_wrong() {
        let stall = |sample: &mut MachineSample| {
            sample.latest = Duration::from_millis(180);
            sample.lost = Duration::from_millis(125);
            sample.runnable = 9;
        };
        let found = disturbances(&story(), &changed(0, 8, stall));
        assert_eq!(
            found[0].to_string(),
            "steady: timers up to 180 ms late, for 48 % of the time; 0 % of the CPU time stolen; 9.0 runnable tasks on average"
        );
    }

    #[test]
    fn phases_are_repeated_with_what_leads_to_them() {
        let at = Duration::from_millis;
        let whole = StoryPart {
            from: at(0),
            to: at(60_000),
        };
        let stretches = |phases: &[&str]| {
            let disturbance = |phase: &&str| Disturbance {
                phase: (*phase).to_owned(),
                stretch: whole,
                latest: MOST_LATE,
                lost: 0.0,
                stolen: 0.0,
                runnable: 0.0,
            };
            let found: Vec<Disturbance> = phases.iter().map(disturbance).collect();
            let stretches = again(&story(), &found);
            stretches
                .into_iter()
                .map(|one| (one.from, one.to))
                .collect::<Vec<_>>()
        };
        assert_eq!(stretches(&["steady"]), [(at(0), at(8_000))]);
        assert_eq!(stretches(&["overload"]), [(at(0), at(22_000))]);
        // The breaker reaches the outage in the same state as in the whole story.
        assert_eq!(stretches(&["recovery"]), [(at(22_000), at(45_000))]);
        assert_eq!(
            stretches(&["steady", "spike"]),
            [(at(0), at(8_000)), (at(38_000), at(50_000))]
        );
        assert_eq!(stretches(&["push", "tighter"]), [(at(45_000), at(60_000))]);
        assert!(stretches(&[]).is_empty());
    }
}
