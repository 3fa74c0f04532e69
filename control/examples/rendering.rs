//! How long a thousand policies take: read, checked, rendered; and one change.
//!
//! `cargo run --release -p tidegate-control --example rendering`

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tidegate_control::policy::{Gathered, gather};
use tidegate_control::render::{Changes, Proxy, Renderer};

/// Policies, each for one of as many proxies.
const POLICIES: u32 = 1_000;

/// Rules for upstreams in each.
const RULES: u32 = 20;

fn main() -> ExitCode {
    let text: String = (0..POLICIES).map(|id| policy(id, 250)).collect();
    let (gathered, reading) = timed(|| gather([("policies.yaml", text.as_bytes())]));
    let mut renderer = Renderer::default();
    for id in 0..POLICIES {
        let proxy = Proxy {
            id: format!("proxy-{id}"),
            ..Proxy::default()
        };
        renderer.connect(id, proxy);
    }
    let (all, rendering) = timed(|| renderer.replace(&gathered.policies));
    let changed = gather([("policies.yaml", policy(7, 300).as_bytes())]);
    let (one, change) = timed(|| put(&mut renderer, &changed));
    let mut out = io::stdout();
    let written = writeln!(
        out,
        "{POLICIES} policies of {RULES} rules, {} bytes: read and checked in {reading:?}, rendered in {rendering:?} for {} proxies; one changed in {change:?} for {}",
        text.len(),
        all.pushed.len(),
        one.pushed.len(),
    );
    if written.is_ok() && gathered.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn put(renderer: &mut Renderer<u32>, changed: &Gathered) -> Changes<u32> {
    let policy = changed.policies.iter().next();
    policy.map_or_else(Changes::default, |policy| renderer.put((**policy).clone()))
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
