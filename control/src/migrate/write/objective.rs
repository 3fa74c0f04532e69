//! Writes objectives: that of the policy, and those of single upstreams.

use tidegate_core::config::parse_duration;

use super::commented::{comment, quoted, write};
use crate::migrate::destination_rule::DestinationRule;
use crate::migrate::known::KnownObjective;
use crate::migrate::{MigrationOptions, QUANTILE};

/// Writes the objective at the top, for upstreams without their own. Returns whether there is one.
pub(super) fn objective(
    out: &mut String,
    options: &MigrationOptions,
    own: &[(&DestinationRule, Option<KnownObjective>)],
) -> bool {
    comment(
        out,
        2,
        "Counts what it would shed, and sheds nothing: check these counts before `mode: enforce`.",
    );
    out.push_str("  mode: observe\n");
    let known = || own.iter().filter_map(|(_, found)| found.as_ref());
    let time = |target: &str| parse_duration(target).unwrap_or_default();
    let longest = known()
        .map(|found| found.target.as_str())
        .max_by_key(|target| time(target));
    let found = match (&options.fixed.latency, longest) {
        (Some(latency), _) => {
            comment(
                out,
                2,
                "A DestinationRule has no objective, which is the only setting that Tidegate needs: set what the services promise. A rule below may have its own.",
            );
            (latency.as_str(), QUANTILE)
        }
        (None, Some(longest)) => {
            comment(
                out,
                2,
                "For upstreams without an objective of their own: the loosest of those below.",
            );
            let quantile = known().map(|found| found.quantile).fold(QUANTILE, f64::min);
            (longest, quantile)
        }
        (None, None) => {
            comment(
                out,
                2,
                "No objective is known, and none is assumed: this policy is not valid until you set what the services promise.",
            );
            out.push_str("  # slo: {latency: {quantile: 0.99, target: ...}}\n");
            return false;
        }
    };
    let (target, quantile) = found;
    write(
        out,
        &format!(
            "  slo:\n    latency:\n      quantile: {quantile}\n      target: {}\n",
            quoted(target)
        ),
    );
    true
}

/// Writes the objective of one upstream, with its source.
pub(super) fn own_objective(out: &mut String, found: &KnownObjective) {
    comment(out, 4, &found.source);
    write(
        out,
        &format!(
            "    slo:\n      latency:\n        quantile: {}\n        target: {}\n",
            found.quantile,
            quoted(&found.target)
        ),
    );
    if let Some(rate) = found.success_rate {
        write(out, &format!("      successRate: {rate}\n"));
    }
}
