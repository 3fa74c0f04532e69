//! Which proxies a policy applies to.

use std::collections::BTreeMap;
use std::fmt;

use tidegate_core::config::Choice;

use super::proxies::ProxyMatch;

/// The three kinds of targets; a policy uses one of them.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyTargets {
    /// Standalone proxies by the node in their bootstrap; one entry must match.
    Proxies(Vec<ProxyMatch>),
    /// Kubernetes workloads by their labels; all labels must match.
    Selector(BTreeMap<String, String>),
    /// Kubernetes objects by name.
    Refs(Vec<TargetRef>),
}

/// A Kubernetes object in the policy's own namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetRef {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
}

/// What a policy can be attached to, the least specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    /// Every workload in the policy's own namespace.
    Namespace,
    /// A gateway or waypoint of the Gateway API.
    Gateway,
    /// A service behind a waypoint.
    Service,
}

impl TargetKind {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Namespace, Self::Gateway, Self::Service];

    /// As in `kind`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Gateway => "Gateway",
            Self::Service => "Service",
        }
    }

    /// As in `group`; empty for the core group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Gateway => "gateway.networking.k8s.io",
            Self::Namespace | Self::Service => "",
        }
    }
}

impl TargetKind {
    /// Whether `group` is a valid API group of the kind.
    #[must_use]
    pub fn is_in_group(self, group: &str) -> bool {
        group == self.group() || (self.group().is_empty() && group == "core")
    }
}

impl Choice for TargetKind {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

/// In a few words, such as `proxies with id web-*`.
impl fmt::Display for PolicyTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proxies(matches) => {
                f.write_str("proxies with ")?;
                separated(f, matches, " or ")
            }
            Self::Selector(labels) => {
                f.write_str("workloads with ")?;
                let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
                separated(f, &labels, ",")
            }
            Self::Refs(refs) => separated(f, refs, ", "),
        }
    }
}

/// `Gateway/waypoint`.
impl fmt::Display for TargetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name(), self.name)
    }
}

fn separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    separator: &str,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            f.write_str(separator)?;
        }
        fmt::Display::fmt(item, f)?;
    }
    Ok(())
}
