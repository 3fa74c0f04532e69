//! Timeouts and retries that conflict with those of callers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use petgraph::graph::NodeIndex;
use tidegate_core::config::Readable;

use super::finding::{ChainFinding, FindingCode, FindingSeverity};
use super::hops::{ChainHop, Hops};
use super::settings::RouteTerms;

/// From this factor on, retries of one request at the entry multiply so much that they keep an outage going.
const STORM: u64 = 10;

/// Routes whose own timeout cuts their retries.
pub(super) fn own_timeouts(routes: &[RouteTerms]) -> Vec<ChainFinding> {
    routes
        .iter()
        .filter_map(|route| {
            let (timeout, tries) = (route.timeout?, route.all_tries()?);
            (tries > timeout && route.retries > 0).then(|| {
                finding(
                    FindingSeverity::Warning,
                    FindingCode::RetriesOutlastTimeout,
                    route,
                    format!(
                        "{} take {}, longer than the timeout of {} for {}: the last ones are cut off",
                        tries_of(route),
                        Readable(tries),
                        Readable(timeout),
                        route.host
                    ),
                )
            })
        })
        .collect()
}

/// Routes that wait as long as some caller on the path waits for the answer, or longer.
pub(super) fn callers(hops: &Hops<'_>) -> Vec<ChainFinding> {
    // The shortest time that any caller waits for an answer of a service.
    let mut shortest: BTreeMap<NodeIndex, WaitingFor<'_>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    // Callers come first, so that the time that a caller's callers wait is known.
    for hop in hops.hops.iter().filter(|hop| !hops.is_in_circle(hop)) {
        let before = shortest.get(&hop.caller).copied();
        let own = hop.routes.iter().filter_map(|route| {
            Some(WaitingFor {
                limit: route.timeout?,
                waiting: hop.caller,
                route,
            })
        });
        let waiting = own.chain(before).min_by_key(|waiting| waiting.limit);
        if let Some(waiting) = waiting {
            let kept = shortest.entry(hop.callee).or_insert(waiting);
            if waiting.limit < kept.limit {
                *kept = waiting;
            }
        }
        let Some(above) = before else {
            continue;
        };
        for route in &hop.routes {
            let Some((code, severity, text)) = against(above.limit, route) else {
                continue;
            };
            let message = format!(
                "{} calls {} with {text}, but {} waits {} ({})",
                hops.name(hop.caller),
                route.host,
                hops.name(above.waiting),
                Readable(above.limit),
                above.route.origin.object,
            );
            // Callers with the same route wait for the same time.
            if seen.insert((
                code,
                &route.origin.place,
                &above.route.origin.place,
                hop.callee,
            )) {
                findings.push(finding(severity, code, route, message));
            }
        }
    }
    findings
}

/// The shortest time that a caller on the path waits, and by which route.
#[derive(Clone, Copy, Debug)]
struct WaitingFor<'a> {
    limit: Duration,
    waiting: NodeIndex,
    route: &'a RouteTerms,
}

/// Findings for a route if a caller on the path waits for `limit`.
fn against(limit: Duration, below: &RouteTerms) -> Option<(FindingCode, FindingSeverity, String)> {
    let wait = below.longest_wait().filter(|wait| *wait >= limit)?;
    let text = format!("{}, up to {} in all", tries_of(below), Readable(wait));
    if below.retries > 0 && below.per_try.is_some() && wait > limit {
        Some((
            FindingCode::RetriesOutlastCaller,
            FindingSeverity::Error,
            text,
        ))
    } else {
        Some((
            FindingCode::TimeoutDoesNotShrink,
            FindingSeverity::Warning,
            text,
        ))
    }
}

/// Chains of calls of which several hops retry.
pub(super) fn storms(hops: &Hops<'_>) -> Vec<ChainFinding> {
    let mut worst: BTreeMap<NodeIndex, StormPath<'_>> = BTreeMap::new();
    let mut goes_on = BTreeSet::new();
    // Callers come first, so that the path to a caller is complete.
    for hop in hops.hops.iter().filter(|hop| !hops.is_in_circle(hop)) {
        let mut path = worst.get(&hop.caller).cloned().unwrap_or_default();
        if path.services.is_empty() {
            path.services.push(hop.caller);
        }
        path.services.push(hop.callee);
        path.ends_with_retry = None;
        if let Some(route) = most_retries(hop) {
            goes_on.insert(hop.caller);
            path.factor = path.factor.saturating_mul(u64::from(route.retries) + 1);
            path.retrying += 1;
            path.ends_with_retry = Some(route);
        }
        let kept = worst.get(&hop.callee).map_or(0, |kept| kept.factor);
        if path.factor > kept {
            worst.insert(hop.callee, path);
        }
    }
    worst
        .iter()
        .filter(|(end, path)| path.retrying > 1 && !goes_on.contains(*end))
        .filter_map(|(_, path)| {
            let route = path.ends_with_retry?;
            let names: Vec<String> = path
                .services
                .iter()
                .map(|index| hops.name(*index))
                .collect();
            let severity = if path.factor >= STORM {
                FindingSeverity::Error
            } else {
                FindingSeverity::Warning
            };
            Some(finding(
                severity,
                FindingCode::RetriesAtEveryHop,
                route,
                format!(
                    "{} hops retry: one request becomes up to {} at the end of {}",
                    path.retrying,
                    path.factor,
                    names.join(" -> ")
                ),
            ))
        })
        .collect()
}

/// The route of a hop with the most retries, if any retries.
fn most_retries<'a>(hop: &ChainHop<'a>) -> Option<&'a RouteTerms> {
    let most = hop.routes.iter().max_by_key(|route| route.retries)?;
    (most.retries > 0).then_some(*most)
}

/// The path to a service on which retries multiply most.
#[derive(Clone, Debug)]
struct StormPath<'a> {
    factor: u64,
    /// Hops that retry.
    retrying: usize,
    services: Vec<NodeIndex>,
    ends_with_retry: Option<&'a RouteTerms>,
}

impl Default for StormPath<'_> {
    fn default() -> Self {
        Self {
            factor: 1,
            retrying: 0,
            services: Vec::new(),
            ends_with_retry: None,
        }
    }
}

fn tries_of(route: &RouteTerms) -> String {
    let per_try = route.per_try.map(|time| format!(" of {}", Readable(time)));
    let tries = route.retries.saturating_add(1);
    let noun = if tries == 1 { "try" } else { "tries" };
    format!("{tries} {noun}{}", per_try.unwrap_or_default())
}

fn finding(
    severity: FindingSeverity,
    code: FindingCode,
    route: &RouteTerms,
    message: String,
) -> ChainFinding {
    ChainFinding::new(
        severity,
        code,
        route.origin.object.clone(),
        Some(route.origin.place.clone()),
        message,
    )
}
