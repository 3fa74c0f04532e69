//! Counts the work of a process.
//!
//! | tool | counts | needs |
//! |---|---|---|
//! | `perf` | user-space instructions, by the processor's own counter | `perf`, and a machine that lends its counters (virtual ones often do not) |
//! | `valgrind` | user-space instructions, by running them one by one | `valgrind`; everything is some fifty times slower |
//! | `cpu` | CPU time, user and kernel, in nanoseconds | nothing |
//!
//! The first two agree within one percent. CPU time depends on everything else on the machine: only ratios of medians are
//! meaningful, and small differences are not.

mod callgrind;
mod cpu;
mod perf;

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use super::CostError;
use super::process::MeasuredEnvoy;

/// A way to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterTool {
    /// `perf stat -e instructions:u`.
    Perf,
    /// `valgrind --tool=callgrind`.
    Valgrind,
    /// `/proc/PID/task/*/schedstat`.
    Cpu,
}

/// A count that has begun.
#[derive(Debug)]
pub struct RunningCount(Running);

#[derive(Debug)]
enum Running {
    Perf(perf::Stat),
    Valgrind,
    Cpu(u64),
}

impl CounterTool {
    /// All tools, from the best to the one that always works.
    pub const ALL: [Self; 3] = [Self::Perf, Self::Valgrind, Self::Cpu];

    /// Why it cannot be used on this machine; `None` if it can.
    #[must_use]
    pub fn refusal(self) -> Option<String> {
        match self {
            Self::Perf => perf::refusal(),
            Self::Valgrind => callgrind::refusal(),
            Self::Cpu => None,
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Valgrind => "valgrind",
            Self::Cpu => "cpu",
        }
    }

    /// What it counts.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Perf | Self::Valgrind => "user-space instructions",
            Self::Cpu => "ns of CPU time",
        }
    }

    /// Whether it counts instructions, for which there are targets.
    #[must_use]
    pub const fn counts_instructions(self) -> bool {
        matches!(self, Self::Perf | Self::Valgrind)
    }

    /// Begins to count in `measured`.
    ///
    /// # Errors
    /// When the counter does not work.
    pub fn begin(self, measured: &MeasuredEnvoy) -> Result<RunningCount, CostError> {
        Ok(RunningCount(match self {
            Self::Perf => Running::Perf(perf::Stat::attach(measured.pid())?),
            Self::Valgrind => {
                // A dump also resets the counters.
                callgrind::dump(measured)?;
                Running::Valgrind
            }
            Self::Cpu => Running::Cpu(cpu::nanoseconds(measured.pid())?),
        }))
    }

    /// The command that runs `binary` so that this tool can count in it.
    pub(super) fn command(self, binary: &Path, folder: &Path) -> Command {
        match self {
            Self::Perf | Self::Cpu => Command::new(binary),
            Self::Valgrind => callgrind::command(binary, folder),
        }
    }
}

impl RunningCount {
    /// Ends the count: the work of the process since the beginning, in [`CounterTool::unit`].
    ///
    /// # Errors
    /// When the counter does not work.
    pub fn end(self, measured: &MeasuredEnvoy) -> Result<u64, CostError> {
        match self.0 {
            Running::Perf(stat) => stat.stop(),
            Running::Valgrind => callgrind::dump(measured),
            Running::Cpu(before) => Ok(cpu::nanoseconds(measured.pid())?.saturating_sub(before)),
        }
    }
}

impl fmt::Display for CounterTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected perf, valgrind or cpu")]
pub struct UnknownTool {
    found: String,
}

impl FromStr for CounterTool {
    type Err = UnknownTool;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = || UnknownTool {
            found: text.to_owned(),
        };
        Self::ALL
            .into_iter()
            .find(|tool| tool.name() == text)
            .ok_or_else(found)
    }
}
