//! The objective in a link: a latency in milliseconds, and its changes during the run.

use std::time::Duration;

use serde::Serialize;
use tidegate_sim::fault::ProxyFault;
use tidegate_sim::number;
use tidegate_sim::scenario::Incident;

/// The latencies that an objective may have, in milliseconds.
pub const OBJECTIVES: [u32; 2] = [1, 60_000];
/// Most changes in one run.
const MOST_PUSHES: usize = 40;

/// The objective changes during the run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ObjectivePush {
    /// When, in seconds.
    pub at_s: f64,
    /// The new latency, in milliseconds.
    pub latency_ms: u32,
}

impl ObjectivePush {
    /// The incident for the proxies.
    #[must_use]
    pub fn incident(&self) -> Incident {
        Incident {
            at: number::seconds(self.at_s),
            proxy: None,
            what: ProxyFault::PushObjective {
                latency: Duration::from_millis(self.latency_ms.into()),
            },
        }
    }
}

/// Reads a latency; `None` if the text is invalid.
pub(crate) fn latency_ms(text: &str) -> Option<u32> {
    let [least, most] = OBJECTIVES;
    let found = text.parse::<u32>().ok();
    found.filter(|ms| (least..=most).contains(ms))
}

/// Reads changes in order of time.
///
/// # Errors
/// With what is wrong.
pub(crate) fn pushes(text: &str) -> Result<Vec<ObjectivePush>, String> {
    let one = |part: &str| {
        let (at, latency) = part.split_once(':')?;
        let at = at
            .parse::<f64>()
            .ok()
            .filter(|at| (0.0..=1e6).contains(at))?;
        Some(ObjectivePush {
            at_s: at,
            latency_ms: latency_ms(latency)?,
        })
    };
    let found: Option<Vec<_>> = text.split(',').map(one).collect();
    let found = found.filter(|found| found.len() <= MOST_PUSHES);
    let found = found.filter(|found| found.is_sorted_by(|a, b| a.at_s < b.at_s));
    found.ok_or_else(|| {
        format!(
            "push: found {text}, expected at most {MOST_PUSHES} changes as second:milliseconds, in order of time: 12:150,20.5:300"
        )
    })
}
