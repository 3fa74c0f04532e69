//! What is carried over from each field, and how.

use std::time::Duration;

use tidegate_core::config::Readable;
use tidegate_core::config::schema::{FIELDS, Span, Values};

use super::bounds::{EndpointBound, ProxyTopology};
use super::traffic::{ConnectionPool, OutlierDetection, TrafficPolicy};

/// The carried-over values, and an explanation of each field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CarriedSettings {
    /// Bound for `limit.max` and `limit.maxOpen`.
    pub(super) limit_max: Option<u32>,
    pub(super) min_open: Option<Duration>,
    pub(super) max_open: Option<Duration>,
    /// Comments above `limit`.
    pub(super) on_limit: Vec<String>,
    /// Comments above `breaker`.
    pub(super) on_breaker: Vec<String>,
    /// What would have been carried over if more were known.
    pub(super) missing: Option<String>,
}

impl CarriedSettings {
    /// Carries over `traffic`. `topology` has the numbers that a bound needs, or names the missing ones.
    pub(super) fn of(traffic: &TrafficPolicy, topology: Result<ProxyTopology, String>) -> Self {
        let mut account = Self::default();
        if let Some(pool) = &traffic.pool {
            account.take_pool(pool, topology);
        }
        match &traffic.outlier {
            Some(outlier) => account.take_outlier(outlier),
            None => account.on_breaker.push(
                "outlierDetection was not set; here the breaker is on unless `breaker: {enabled: false}`."
                    .to_owned(),
            ),
        }
        account
    }

    fn take_pool(&mut self, pool: &ConnectionPool, topology: Result<ProxyTopology, String>) {
        let (limit, source) = in_flight(pool);
        // Whether a limit counts as unlimited does not depend on the numbers.
        let any = ProxyTopology::Sidecars {
            clients: None,
            replicas: 1,
        };
        let missing = topology.as_ref().err();
        let bound = limit.map(|limit| EndpointBound::of(limit, topology.clone().unwrap_or(any)));
        match bound {
            Some(EndpointBound::PerEndpoint { .. }) if missing.is_some() => {
                let missing = missing.map_or("", String::as_str);
                self.on_limit.push(format!(
                    "{source}: not carried over, limit.max keeps its default. Not known: {missing}."
                ));
                self.missing = Some(missing.to_owned());
            }
            None => self.on_limit.push(
                "connectionPool bounds no requests in flight; limit.max keeps its default."
                    .to_owned(),
            ),
            Some(EndpointBound::Unlimited) => self.on_limit.push(format!(
                "{source} is effectively unlimited; limit.max keeps its default."
            )),
            Some(EndpointBound::PerEndpoint { max, why }) => {
                self.limit_max = Some(max);
                // Envoy counts a request until its end, which is longer than it counts against the limit.
                self.on_limit
                    .push(format!("{source} -> limit.max and limit.maxOpen. {why}."));
            }
        }
        if pool.is_http2 && pool.max_connections.is_some() {
            self.on_limit.push(
                "tcp.maxConnections: not a bound on requests, which share connections in HTTP/2 (h2UpgradePolicy)."
                    .to_owned(),
            );
        }
        if let Some(pending) = pool.max_pending {
            self.on_limit.push(format!(
                "http.http1MaxPendingRequests: {pending}, not carried over: the limit avoids a standing queue; bursts pass as far as the objective allows."
            ));
        }
        if let Some(retries) = pool.max_retries {
            self.on_limit.push(format!(
                "http.maxRetries: {retries}, not carried over: under overload retries are shed before first attempts."
            ));
        }
        if !pool.staying.is_empty() {
            self.on_limit.push(format!(
                "{}: about connections, not requests; keep it in the DestinationRule.",
                pool.staying.join(", ")
            ));
        }
    }

    fn take_outlier(&mut self, outlier: &OutlierDetection) {
        if let Some(base) = outlier.base_ejection {
            let shown = Readable(base);
            let (min, max) = (span("breaker.minOpen"), span("breaker.maxOpen"));
            let carried = max.map_or(base, |max| base.clamp(max.min, max.max));
            self.max_open = Some(carried);
            let default = min.and_then(|min| min.default);
            // The shortest interval may not exceed the longest.
            self.min_open = default
                .filter(|default| *default > carried)
                .map(|_| carried);
            self.on_breaker.push(format!(
                "outlierDetection.baseEjectionTime: {shown} -> breaker.maxOpen: the upstream is probed at the latest when an endpoint would have returned after its first ejection; earlier once its recoveries are known."
            ));
        }
        if !outlier.learned.is_empty() {
            self.on_breaker.push(format!(
                "outlierDetection.{}: not carried over: the breaker trips as early as the evidence allows, at any rate of requests.",
                outlier.learned.join(", ")
            ));
        }
        let mut shares = Vec::new();
        shares.extend(
            outlier
                .max_ejection_percent
                .map(|percent| format!("maxEjectionPercent: {percent}")),
        );
        shares.extend(
            outlier
                .min_health_percent
                .map(|percent| format!("minHealthPercent: {percent}")),
        );
        if !shares.is_empty() {
            self.on_breaker.push(format!(
                "outlierDetection.{}: not carried over: the breaker judges the upstream as a whole and ejects no endpoint. To have single bad endpoints ejected, keep outlierDetection in the DestinationRule.",
                shares.join(", ")
            ));
        }
    }
}

/// The bound on the requests in flight of one proxy, and the field that sets it.
pub(super) fn in_flight(pool: &ConnectionPool) -> (Option<u64>, String) {
    let streams = pool
        .max_connections
        .zip(pool.max_streams)
        .map(|(connections, streams)| connections.saturating_mul(streams));
    // In HTTP/1.1 a connection carries one request at a time.
    let by_connections = if pool.is_http2 {
        streams
    } else {
        pool.max_connections
    };
    match (by_connections, pool.max_requests) {
        (Some(connections), Some(requests)) if requests < connections => (
            Some(requests),
            format!("http.http2MaxRequests: {requests} (below what connections allow)"),
        ),
        (Some(connections), _) if pool.is_http2 => (
            Some(connections),
            format!("tcp.maxConnections x http.maxConcurrentStreams: {connections}"),
        ),
        (Some(connections), Some(requests)) => (
            Some(connections),
            format!("tcp.maxConnections: {connections} (below http.http2MaxRequests: {requests})"),
        ),
        (Some(connections), None) => (
            Some(connections),
            format!("tcp.maxConnections: {connections} (one request each in HTTP/1.1)"),
        ),
        (None, Some(requests)) => (Some(requests), format!("http.http2MaxRequests: {requests}")),
        (None, None) => (None, String::new()),
    }
}

fn span(path: &str) -> Option<Span> {
    FIELDS
        .iter()
        .find(|field| field.path == path)
        .and_then(|field| match field.values {
            Values::Span(span) => Some(span),
            _ => None,
        })
}
