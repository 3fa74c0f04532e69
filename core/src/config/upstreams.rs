//! Which policy an upstream gets.
//!
//! Rules are tried in the order of the document. The first rule whose conditions
//! all match wins. If there is none, the top level applies. The search is linear
//! in the number of rules, so it runs once per upstream and configuration, not
//! per request.

use std::fmt;

use super::pattern::Pattern;
use super::policy::Policy;
use super::reader::Section;
use super::schema;

/// What follows `name.namespace` in the host of a Kubernetes service.
const SERVICE_LABEL: &str = ".svc";

/// The names by which an upstream can be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamName<'a> {
    /// Host of the service, such as `payments.shop.svc.cluster.local`, if the
    /// cluster's name has it.
    pub service: Option<&'a str>,
    /// Name of the Envoy cluster.
    pub cluster: &'a str,
    /// Name of the route, if it was read ([`super::Config::needs_route`]).
    pub route: Option<&'a str>,
}

/// The place of a policy in the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleIndex {
    /// At the top level.
    #[default]
    TopLevel,
    /// At this index under `upstreams`, from 0.
    Rule(usize),
}

impl fmt::Display for RuleIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TopLevel => f.write_str("top level"),
            Self::Rule(index) => write!(f, "upstreams[{index}]"),
        }
    }
}

/// One entry of `upstreams`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    upstream: UpstreamMatch,
    policy: Policy,
}

impl Rule {
    /// The upstreams that it applies to.
    #[must_use]
    pub const fn upstream(&self) -> &UpstreamMatch {
        &self.upstream
    }

    /// The complete policy. Values that the rule does not set come from the top level.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Reads the list. Each `match` may occur once.
    pub(super) fn read_all(s: &mut Section<'_>, top_level: &Policy) -> Vec<Self> {
        let mut seen: Vec<Option<UpstreamMatch>> = Vec::new();
        s.objects("upstreams", schema::MAX_RULES, |s| {
            let upstream = s.object("match", |s| UpstreamMatch::read(s, &seen));
            seen.push(upstream.clone());
            let policy = Policy::read(s, Some(top_level));
            upstream.map(|upstream| Self { upstream, policy })
        })
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The conditions of a rule. At least one is set, and all that are set must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamMatch {
    service: Option<Pattern>,
    cluster: Option<Pattern>,
    route: Option<Pattern>,
}

impl UpstreamMatch {
    /// Whether every condition holds. No condition holds for an unknown name.
    #[must_use]
    pub fn matches(&self, name: &UpstreamName<'_>) -> bool {
        holds(self.service.as_ref(), name.service, matches_service)
            && holds(self.cluster.as_ref(), Some(name.cluster), Pattern::matches)
            && holds(self.route.as_ref(), name.route, Pattern::matches)
    }

    /// Whether a route's name is among the conditions.
    #[must_use]
    pub const fn needs_route(&self) -> bool {
        self.route.is_some()
    }

    fn read(s: &mut Section<'_>, earlier: &[Option<Self>]) -> Option<Self> {
        let errors = s.error_count();
        let read = Self {
            service: s.text("service", &schema::HOST_EXPECTED, Pattern::host),
            cluster: s.text("cluster", &schema::NAME_EXPECTED, Pattern::parse),
            route: s.text("route", &schema::NAME_EXPECTED, Pattern::parse),
        };
        let is_empty = read.service.is_none() && read.cluster.is_none() && read.route.is_none();
        if errors != s.error_count() {
            return None;
        }
        if is_empty {
            s.reject_whole(
                "no condition".to_owned(),
                "at least one of service, cluster, route".to_owned(),
            );
            return None;
        }
        let same = earlier
            .iter()
            .position(|earlier| earlier.as_ref() == Some(&read));
        if let Some(index) = same {
            s.reject_whole(
                format!("the conditions of upstreams[{index}] again"),
                "each match once: the first one wins".to_owned(),
            );
        }
        Some(read)
    }
}

fn holds(
    pattern: Option<&Pattern>,
    name: Option<&str>,
    matches: impl Fn(&Pattern, &str) -> bool,
) -> bool {
    match (pattern, name) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(pattern), Some(name)) => matches(pattern, name),
    }
}

/// A service has its whole host as a name and, in Kubernetes, `name.namespace` and
/// `name.namespace.svc` as well. `name` alone is not a short form, because two
/// namespaces may have the same name. `name.*` means all of them.
fn matches_service(pattern: &Pattern, host: &str) -> bool {
    pattern.matches(host)
        || short_forms(host)
            .is_some_and(|(name, name_svc)| pattern.matches(name) || pattern.matches(name_svc))
}

/// `name.namespace` and `name.namespace.svc` of a Kubernetes service host.
fn short_forms(host: &str) -> Option<(&str, &str)> {
    let (_, after_name) = host.split_once('.')?;
    let (namespace, after) = after_name.split_once(SERVICE_LABEL)?;
    let is_service = !namespace.contains('.') && (after.is_empty() || after.starts_with('.'));
    let svc_at = host.len().checked_sub(after.len())?;
    let name_svc = host.get(..svc_at)?;
    is_service.then_some((name_svc.strip_suffix(SERVICE_LABEL)?, name_svc))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "payments.shop.svc.cluster.local";

    fn is_for(pattern: &str, host: &str) -> bool {
        matches_service(&Pattern::host(pattern).unwrap(), host)
    }

    #[test]
    fn a_kubernetes_service_has_three_names() {
        for pattern in [
            HOST,
            "payments.shop",
            "payments.shop.svc",
            "payments.*",
            "*.shop",
            "*.shop.svc",
            "*.shop.svc.cluster.local",
            "*",
        ] {
            assert!(is_for(pattern, HOST), "{pattern}");
        }
    }

    #[test]
    fn a_name_without_a_namespace_is_no_short_form() {
        for pattern in [
            "payments",
            "shop",
            "payments.sho",
            "payments.shop.svc.cluster",
        ] {
            assert!(!is_for(pattern, HOST), "{pattern}");
        }
    }

    #[test]
    fn hosts_outside_kubernetes_have_no_short_forms() {
        for host in [
            "payments",
            "payments.example.com",
            "a.b.c.svc.cluster.local",
            "a.b.svcs.cluster.local",
            "",
            ".",
            ".svc",
        ] {
            assert_eq!(short_forms(host), None, "{host}");
        }
        assert_eq!(short_forms("a.b.svc"), Some(("a.b", "a.b.svc")));
    }
}
