//! The choices in a policy, each a closed set of names.

use std::fmt;

use super::kinds::Choice;
use crate::upstream::leads_anywhere;

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Admit everything, and count what would have been shed.
    Observe,
    /// Shed.
    Enforce,
}

/// The moment of a response at which its latency ends. A request counts as in flight up to the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Until {
    /// The response headers.
    #[default]
    Headers,
    /// The first byte of the body: for servers that send headers before they do the work.
    FirstByte,
    /// The last byte.
    End,
}

/// What matters more: stability or throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stance {
    /// Stability: while a queue stands, the smallest limit that carries the throughput.
    FailFast,
    /// Throughput: up to the edge of the objective's latency, also then.
    Throughput,
}

/// What shares one state, and so is shed together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyBy {
    /// The cluster, or nothing if its name says that it leads to several destinations.
    #[default]
    Auto,
    /// The cluster, whatever its name says.
    Cluster,
    /// Each authority in requests to the cluster, for a cluster whose destinations have nothing in common.
    Authority,
    /// Nothing: requests pass without a decision.
    Nothing,
}

/// What the caller is told to do about a shed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// The whole service is overloaded: do not retry.
    Stop,
    /// Only this endpoint is overloaded: another one may answer.
    RetryElsewhere,
}

impl Mode {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Observe, Self::Enforce];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

impl Choice for Mode {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Until {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Headers, Self::FirstByte, Self::End];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::FirstByte => "firstByte",
            Self::End => "end",
        }
    }
}

impl Choice for Until {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Stance {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::FailFast, Self::Throughput];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailFast => "failFast",
            Self::Throughput => "throughput",
        }
    }
}

impl Choice for Stance {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl KeyBy {
    /// Every value.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Cluster, Self::Authority, Self::Nothing];

    /// Replaces [`Self::Auto`] by what it means for this cluster.
    #[must_use]
    pub fn resolve(self, cluster: &str) -> Self {
        match self {
            Self::Auto if leads_anywhere(cluster) => Self::Nothing,
            Self::Auto => Self::Cluster,
            chosen => chosen,
        }
    }

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cluster => "cluster",
            Self::Authority => "authority",
            Self::Nothing => "none",
        }
    }
}

impl Choice for KeyBy {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Reply {
    /// Every value.
    pub const ALL: [Self; 2] = [Self::Stop, Self::RetryElsewhere];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::RetryElsewhere => "retryElsewhere",
        }
    }
}

impl Choice for Reply {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for KeyBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
