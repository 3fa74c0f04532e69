//! What a leader does on every tick, and how every worker publishes its counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{Event, Instant, UnderWay, UpstreamId, UpstreamKey};

use crate::api::{Host, LogLevel};
use crate::faults::Fault;
use crate::metrics::exporter::{Outlet, labels};
use crate::metrics::name::upstream_labels;
use crate::names::Permission;
use crate::plugin::Plugin;
use crate::reconcile::Look;

/// Leads: gathers, decides, tells the others, and puts gauges right. Answers whether all workers had reported, so
/// that something was decided.
pub(crate) fn lead<H: Host>(plugin: &mut Plugin<H>, own: &[u8], now: Instant) -> bool {
    let workers = plugin.exchange.workers();
    let slices = plugin
        .exchange
        .gather(&plugin.host, &plugin.faults, own, now);
    if plugin.exchange.workers() < workers {
        plugin.reconciler.suspect(now);
    }
    plugin.introduce_all(&slices, now);
    let clock = plugin.host.wall_clock();
    if let Some(clock) = plugin.faults.check(&plugin.host, Fault::Clock, clock) {
        plugin.engine.align(clock.saturating_since(now));
    }
    let mut counters = plugin
        .gauges
        .counters(&plugin.host, &plugin.naming, &plugin.faults);
    let Some((directives, events)) = plugin.engine.decide(&slices, &mut counters, now) else {
        return false;
    };
    drop(slices);
    plugin.adopt(&directives, now);
    plugin
        .exchange
        .decree(&plugin.host, &plugin.faults, directives);
    for event in &events {
        announce(plugin, event, now);
    }
    let engine = &plugin.engine;
    plugin
        .exchange
        .keep(&plugin.host, &plugin.faults, || engine.learned(now), now);
    reconcile(plugin, now);
    true
}

/// Every worker: adds what its counts grew by. The leader, who has `decided`, records what holds for all.
pub(crate) fn publish_metrics<H: Host>(plugin: &mut Plugin<H>, decided: bool, now: Instant) {
    let overflowed = plugin.engine.overflowed();
    let mut upstreams = 0;
    // Taken out so that the engine can be looked at while metrics are published.
    let mut exporter = core::mem::take(&mut plugin.exporter);
    let mut newcomers = Vec::new();
    for view in plugin.engine.views(now) {
        upstreams += usize::from(view.id != UpstreamId::OVERFLOW);
        // Nothing may ever have been beyond the cap.
        let is_used = view.id != UpstreamId::OVERFLOW || overflowed > 0;
        if is_used && !exporter.knows(&view) {
            newcomers.push((view.id, view.hash));
        }
    }
    for (id, hash) in newcomers {
        let permission = plugin.permit(hash);
        if permission != Permission::Undecided {
            exporter.introduce(id, hash, permission);
        }
    }
    let mut out = Outlet {
        host: &plugin.host,
        naming: &plugin.naming,
        faults: &plugin.faults,
    };
    for view in plugin.engine.views(now) {
        exporter.add(&mut out, &view);
        if decided {
            let under_way = plugin.engine.under_way(view.hash).unwrap_or_default();
            exporter.record(&mut out, &view, under_way.open);
        }
    }
    if decided {
        exporter.record_plugin(&mut out, upstreams, plugin.exchange.workers());
    }
    exporter.add_plugin(&mut out, overflowed);
    plugin.exporter = exporter;
}

/// Logs and counts a transition.
fn announce<H: Host>(plugin: &mut Plugin<H>, event: &Event, now: Instant) {
    let upstream = Plugin::<H>::upstream_of(event);
    let key = Arc::clone(plugin.engine.key(upstream));
    if let Some((level, what)) = tidings(event) {
        log(plugin, level, &what, (upstream, &key), now);
    }
    let hash = plugin.engine.hash(upstream);
    let labels = labels(&key, plugin.permit(hash));
    let (exporter, mut out) = plugin.outlet();
    exporter.count_event(&mut out, &labels, event);
}

/// What a log should say of an event; another law for the limit is for metrics only, because bursts bring many.
fn tidings(event: &Event) -> Option<(LogLevel, String)> {
    Some(match event {
        Event::Tripped { reason, .. } => (
            LogLevel::Warn,
            format!("breaker opened reason={}", reason.as_str()),
        ),
        Event::Ramping { .. } => (LogLevel::Info, "breaker half-open, ramping".to_owned()),
        Event::Reset { .. } => (LogLevel::Info, "breaker closed".to_owned()),
        Event::LimitReason { .. } => return None,
    })
}

/// Logs what happened to an upstream.
fn log<H: Host>(
    plugin: &mut Plugin<H>,
    level: LogLevel,
    what: &str,
    (upstream, key): (UpstreamId, &UpstreamKey),
    now: Instant,
) {
    let facts = plugin
        .engine
        .views(now)
        .find(|view| view.id == upstream)
        .map(|view| {
            format!(
                " limit={} open_interval_ms={}",
                view.limit, view.learned.open_interval_ms
            )
        })
        .unwrap_or_default();
    let route = key
        .route
        .as_ref()
        .map(|route| format!(" route={route}"))
        .unwrap_or_default();
    plugin.log(
        level,
        &format!("tidegate: {what} upstream={}{route}{facts}", key.cluster),
    );
}

/// Compares the gauges in use with what workers report.
fn reconcile<H: Host>(plugin: &mut Plugin<H>, now: Instant) {
    let watched: Vec<(UpstreamId, u64, UnderWay)> = {
        let unsettled: BTreeSet<u64> = plugin.reconciler.unsettled().collect();
        let engine = &plugin.engine;
        engine
            .views(now)
            .filter_map(|view| {
                let under_way = match engine.under_way(view.hash) {
                    Some(under_way) => under_way,
                    None if unsettled.contains(&view.hash) => UnderWay::default(),
                    None => return None,
                };
                Some((view.id, view.hash, under_way))
            })
            .collect()
    };
    for (id, hash, under_way) in watched {
        let sum = i64::try_from(under_way.in_flight).unwrap_or(i64::MAX);
        let others = under_way.others.map(i64::from);
        let mut counters = plugin
            .gauges
            .counters(&plugin.host, &plugin.naming, &plugin.faults);
        let Some(gauge) = counters.in_flight(id) else {
            continue;
        };
        let correction = plugin
            .reconciler
            .observe(hash, Look { gauge, sum, others }, now);
        if correction == 0 {
            continue;
        }
        plugin
            .gauges
            .counters(&plugin.host, &plugin.naming, &plugin.faults)
            .correct_in_flight(id, correction);
        let key = Arc::clone(plugin.engine.key(id));
        let line = format!(
            "tidegate: in-flight corrected upstream={} by={correction} gauge={gauge} workers={sum}",
            key.cluster
        );
        plugin.log(LogLevel::Warn, &line);
        let labels = upstream_labels(&key);
        let (exporter, mut out) = plugin.outlet();
        exporter.count_reconciled(&mut out, &labels, correction.unsigned_abs());
    }
    plugin.reconciler.settle();
}
