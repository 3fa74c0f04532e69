//! The kinds of faults, what each may do to requests, and how long it lasts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One of the two upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamSide {
    /// The first.
    Alpha,
    /// The second.
    Beta,
}

impl UpstreamSide {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Alpha, Self::Beta];

    /// Name of the upstream, its cluster, and the authority of its requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alpha => "alpha",
            Self::Beta => "beta",
        }
    }
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The VM of one worker traps.
    VmCrashOne,
    /// The VMs of all workers trap.
    VmCrashAll,
    /// A hundred policies are pushed, good and bad.
    Pushes,
    /// An upstream is killed and started again.
    UpstreamKilled,
    /// An upstream's process is suspended and resumed.
    UpstreamHung,
    /// An upstream closes its port and its connections.
    UpstreamRefusing,
    /// An upstream takes ten times as long.
    UpstreamSlow,
    /// An upstream closes the connection of each request.
    UpstreamResetting,
    /// The control service is killed and started again.
    ControlKilled,
    /// The control service can write nothing.
    DiskFull,
    /// A new Envoy takes over the sockets, and the old one drains.
    HotRestart,
    /// Other threads use the processors.
    CpuContention,
    /// The wall clock of Envoy and of the control service is set, and set back.
    ClockStep,
    /// Envoy's process is suspended for a while: its monotonic clock jumps.
    Suspended,
}

/// Which of the requests that overlap with a fault it may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// None.
    Nobody,
    /// Those whose connection to Envoy ended before an answer began.
    Connections,
    /// Those to the upstream that it affects.
    Upstream,
    /// All.
    Everybody,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::VmCrashOne,
        Self::VmCrashAll,
        Self::Pushes,
        Self::UpstreamKilled,
        Self::UpstreamHung,
        Self::UpstreamRefusing,
        Self::UpstreamSlow,
        Self::UpstreamResetting,
        Self::ControlKilled,
        Self::DiskFull,
        Self::HotRestart,
        Self::CpuContention,
        Self::ClockStep,
        Self::Suspended,
    ];

    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::VmCrashOne => "vm-crash-one",
            Self::VmCrashAll => "vm-crash-all",
            Self::Pushes => "pushes",
            Self::UpstreamKilled => "upstream-killed",
            Self::UpstreamHung => "upstream-hung",
            Self::UpstreamRefusing => "upstream-refusing",
            Self::UpstreamSlow => "upstream-slow",
            Self::UpstreamResetting => "upstream-resetting",
            Self::ControlKilled => "control-killed",
            Self::DiskFull => "disk-full",
            Self::HotRestart => "hot-restart",
            Self::CpuContention => "cpu-contention",
            Self::ClockStep => "clock-step",
            Self::Suspended => "suspended",
        }
    }

    /// Which requests it may cost.
    #[must_use]
    pub const fn harm(self) -> Harm {
        match self {
            Self::VmCrashOne | Self::VmCrashAll => Harm::Everybody,
            Self::HotRestart => Harm::Connections,
            Self::UpstreamKilled
            | Self::UpstreamHung
            | Self::UpstreamRefusing
            | Self::UpstreamSlow
            | Self::UpstreamResetting => Harm::Upstream,
            Self::Pushes
            | Self::ControlKilled
            | Self::DiskFull
            | Self::CpuContention
            | Self::ClockStep
            | Self::Suspended => Harm::Nobody,
        }
    }

    /// Whether Envoy's counters lose nothing. A VM that dies loses what it counted since its last publication, and a hot
    /// restart loses what the old Envoy counts after its successor last asked.
    #[must_use]
    pub const fn keeps_counters(self) -> bool {
        !matches!(self, Self::VmCrashOne | Self::VmCrashAll | Self::HotRestart)
    }

    /// Shortest and longest duration, milliseconds. A crash, a restart and pushes end when they have happened.
    #[must_use]
    pub const fn lasts_ms(self) -> (u64, u64) {
        match self {
            Self::VmCrashOne | Self::VmCrashAll | Self::HotRestart => (0, 0),
            Self::Pushes => (2_000, 4_000),
            Self::ControlKilled | Self::DiskFull | Self::ClockStep => (500, 2_000),
            Self::CpuContention => (1_500, 3_000),
            Self::UpstreamSlow => (2_000, 3_000),
            Self::Suspended | Self::UpstreamHung => (500, 3_000),
            Self::UpstreamKilled | Self::UpstreamRefusing | Self::UpstreamResetting => (500, 2_500),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no kind has.
#[derive(Debug, thiserror::Error)]
#[error("found {found:?}, expected one of {}", FaultKind::ALL.map(FaultKind::name).join(", "))]
pub struct UnknownKind {
    found: String,
}

impl FromStr for FaultKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let unknown = || UnknownKind {
            found: text.to_owned(),
        };
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == text).ok_or_else(unknown)
    }
}

/// One fault, with all that was drawn for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedFault {
    /// What happens.
    pub kind: FaultKind,
    /// The affected upstream, if the kind affects one.
    pub side: UpstreamSide,
    /// Duration, milliseconds.
    pub lasts_ms: u64,
    /// Seed of everything else that it draws.
    pub seed: u64,
}

impl InjectedFault {
    /// From its beginning to its end.
    #[must_use]
    pub const fn lasts(&self) -> Duration {
        Duration::from_millis(self.lasts_ms)
    }

    /// Whether it may cost a request to `side`.
    #[must_use]
    pub fn may_harm(&self, side: UpstreamSide) -> bool {
        match self.kind.harm() {
            Harm::Nobody => false,
            Harm::Upstream => self.side == side,
            Harm::Connections | Harm::Everybody => true,
        }
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if self.kind.harm() == Harm::Upstream {
            write!(f, " {}", self.side.name())?;
        }
        if self.lasts_ms > 0 {
            write!(f, " for {} ms", self.lasts_ms)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.name().parse::<FaultKind>().unwrap(), kind);
        }
        let error = "flood".parse::<FaultKind>().unwrap_err().to_string();
        assert!(
            error.contains("\"flood\"") && error.contains("disk-full"),
            "{error}"
        );
    }

    #[test]
    fn a_fault_of_one_upstream_leaves_the_other_alone() {
        let mut fault = InjectedFault {
            kind: FaultKind::UpstreamHung,
            side: UpstreamSide::Beta,
            lasts_ms: 1,
            seed: 0,
        };
        assert!(fault.may_harm(UpstreamSide::Beta) && !fault.may_harm(UpstreamSide::Alpha));
        fault.kind = FaultKind::Pushes;
        assert!(!fault.may_harm(UpstreamSide::Beta));
        fault.kind = FaultKind::VmCrashOne;
        assert!(fault.may_harm(UpstreamSide::Alpha));
    }
}
