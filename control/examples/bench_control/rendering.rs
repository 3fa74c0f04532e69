//! How long it takes to read, check and render a thousand policies, and to take in one change of one of them.

use std::time::{Duration, Instant};

use tidegate_control::policy::{Gathered, ProxyNode, gather};
use tidegate_control::render::{RenderChanges, Renderer};

/// The number of policies. Each applies to its own proxy.
pub(crate) const POLICIES: u32 = 1_000;

/// The number of upstream rules in each policy.
const RULES: u32 = 20;

/// What was measured.
pub(crate) struct Times {
    /// Reading and checking all.
    pub(crate) read: Duration,
    /// Rendering all.
    pub(crate) render: Duration,
    /// Taking in one changed policy.
    pub(crate) change: Duration,
    /// Proxies that this one change touched.
    pub(crate) touched: usize,
}

pub(crate) fn measure() -> Times {
    let text: String = (0..POLICIES).map(|id| policy(id, 250)).collect();
    let (gathered, read) = timed(|| gather([("policies.yaml", text.as_bytes())]));
    assert!(gathered.problems.is_empty(), "{:?}", gathered.problems);
    let mut renderer = Renderer::default();
    for id in 0..POLICIES {
        let proxy = ProxyNode {
            id: format!("proxy-{id}"),
            ..ProxyNode::default()
        };
        renderer.connect(id, proxy);
    }
    let (_, render) = timed(|| renderer.replace(&gathered.policies));
    let changed = gather([("policies.yaml", policy(7, 300).as_bytes())]);
    let (one, change) = timed(|| put(&mut renderer, &changed));
    Times {
        read,
        render,
        change,
        touched: one.pushed.len(),
    }
}

fn put(renderer: &mut Renderer<u32>, changed: &Gathered) -> RenderChanges<u32> {
    let policy = changed.policies.iter().next();
    policy.map_or_else(RenderChanges::default, |policy| {
        renderer.put((**policy).clone())
    })
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

fn policy(id: u32, target_ms: u32) -> String {
    let rules: String = (0..RULES)
        .map(|rule| {
            format!(
                "  - match: {{service: service-{rule}.namespace-{id}}}\n    limit: {{max: {}}}\n    slo: {{latency: {{target: 80ms}}}}\n",
                rule + 100
            )
        })
        .collect();
    format!(
        "---\napiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {{name: policy-{id}}}\nspec:\n  proxies: [{{id: proxy-{id}}}]\n  slo: {{latency: {{quantile: 0.99, target: {target_ms}ms}}}}\n  upstreams:\n{rules}"
    )
}
