//! What callers saw: the time, outcome and latency of every request that was answered.
//!
//! A proxy is between a caller and its upstream. The latency that the proxy measures is longer than the time for which
//! the upstream had the request. It is shorter than the time for which the caller waited. This also holds on a busy
//! machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The names of a caller and of its upstream.
pub(crate) type Ends = (&'static str, &'static str);

/// All requests so far.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// The time of the answer in seconds since 1970, and the request.
    seen: Mutex<BTreeMap<Ends, Vec<(f64, SeenRequest)>>>,
}

/// One request, as its caller saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) is_success: bool,
    /// How long the caller waited.
    pub(crate) latency: Duration,
    /// How long the upstream had the request; `None` if the proxy answered by itself.
    pub(crate) handled: Option<Duration>,
}

/// What callers saw in a window.
#[derive(Clone, Debug)]
pub(crate) struct TrueTraffic {
    pub(crate) rate: f64,
    pub(crate) requests: f64,
    pub(crate) success: f64,
    /// Seconds that the upstream had the requests, sorted; empty if it got none.
    pub(crate) handled: Vec<f64>,
    /// Seconds that the caller waited, sorted.
    pub(crate) waited: Vec<f64>,
}

pub(crate) fn mean(sorted: &[f64]) -> f64 {
    sorted.iter().sum::<f64>() / count(sorted.len())
}

pub(crate) fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position among some hundred latencies"
    )]
    let position = (quantile * count(sorted.len() - 1)).round() as usize;
    *sorted.get(position).unwrap()
}

fn count(length: usize) -> f64 {
    f64::from(u32::try_from(length).unwrap())
}

impl Truth {
    /// Notes a request that was answered just now.
    pub(crate) fn note(&self, ends: Ends, seen: SeenRequest) {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(ends).or_default().push((now(), seen));
    }

    /// How many requests were answered.
    pub(crate) fn count(&self, ends: Ends) -> usize {
        let all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&ends).map_or(0, Vec::len)
    }

    /// What callers saw in the window that ends at `end`.
    pub(crate) fn window(&self, end: u64, seconds: u32) -> BTreeMap<Ends, TrueTraffic> {
        let length = f64::from(seconds);
        let end = Duration::from_secs(end).as_secs_f64();
        let all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let in_window = |(at, _): &&(f64, _)| *at > end - length && *at <= end;
        all.iter()
            .filter_map(|(ends, seen)| {
                let seen = seen.iter().filter(in_window).map(|(_, seen)| *seen);
                let seen: Vec<SeenRequest> = seen.collect();
                (!seen.is_empty()).then(|| (*ends, traffic(&seen, length)))
            })
            .collect()
    }
}

fn traffic(seen: &[SeenRequest], length: f64) -> TrueTraffic {
    let requests = count(seen.len());
    let good = seen.iter().filter(|seen| seen.is_success).count();
    let handled = seen.iter().filter_map(|seen| seen.handled).collect();
    let waited = seen.iter().map(|seen| seen.latency).collect();
    TrueTraffic {
        rate: requests / length,
        requests,
        success: count(good) / requests,
        handled: sorted(handled),
        waited: sorted(waited),
    }
}

fn sorted(times: Vec<Duration>) -> Vec<f64> {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs_f64()
}
