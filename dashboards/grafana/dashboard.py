#!/usr/bin/env python3
"""The Grafana dashboard, as code: prints tidegate.json.

Built with Grafana's Foundation SDK (https://github.com/grafana/grafana-foundation-sdk), whose builders are generated from
Grafana's own schema, so that a field that Grafana does not know cannot be written. ci/dashboards.sh installs it by
checksum and compares what this prints with the committed file.

Every panel says in its description how to read it. Queries sum over proxies; the variable `instance` narrows them.
"""

import json
import sys

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

# Links and provisioned folders hold on to it: it never changes.
UID = "tidegate"
SOURCE = model.DataSourceRef(type_val="prometheus", uid="$datasource")

# What the variables at the top leave: `instance` only for metrics of the filter, records have none.
UPSTREAM = 'tidegate_upstream=~"$upstream"'
FILTER = f'{UPSTREAM}, instance=~"$instance"'

RED, ORANGE, YELLOW, GREEN, BLUE, PURPLE, GREY = "red", "orange", "yellow", "green", "blue", "purple", "text"
REASONS = {
    "limit": ORANGE,
    "criticality": YELLOW,
    "retry": BLUE,
    "deadline": GREY,
    "max_open": GREEN,
    "breaker_open": RED,
    "breaker_half_open": PURPLE,
}
CLASSES = {"critical_plus": RED, "critical": ORANGE, "sheddable_plus": YELLOW, "sheddable": BLUE}
OUTCOMES = {
    "success": GREEN,
    "failure": RED,
    "overload": ORANGE,
    "stale": PURPLE,
    "ignored": GREY,
    "cancelled": BLUE,
}


def rate(metric, more=""):
    """Events a second of a counter of the filter."""
    return f"rate({metric}{{{FILTER}{more}}}[$__rate_interval])"


def query(expr, legend="", instant=False):
    built = prometheus.Dataquery().expr(expr).legend_format(legend).datasource(SOURCE)
    return built.instant().format(PromQueryFormat.TABLE) if instant else built.range()


def steps(*pairs):
    """Colors from a value on; the first has no lower bound."""
    return (
        dashboard.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=color) for value, color in pairs])
    )


def finish(panel, title, description, unit, width, height, queries):
    panel = panel.title(title).description(description).unit(unit).span(width).height(height).datasource(SOURCE)
    for letter, one in zip("ABCDEF", queries):
        panel = panel.with_target(one.ref_id(letter))
    return panel


def colour(panel, names):
    for name, color in names.items():
        fixed = model.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": color})
        panel = panel.override_by_name(name, [fixed])
    return panel


def lines(title, description, *queries, unit="reqps", width=12, height=8, stack=False, names=None):
    panel = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(60 if stack else 10)
        .show_points(kinds.VisibilityMode.NEVER)
        .min(0)
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .legend(
            common.VizLegendOptions()
            .display_mode(kinds.LegendDisplayMode.LIST)
            .placement(kinds.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
    )
    if stack:
        panel = panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL))
    return colour(finish(panel, title, description, unit, width, height, queries), names or {})


def burn(title, description, kind):
    """Burn rates, with the lines at which the alerts fire."""
    windows = ["5m", "30m", "1h", "6h"]
    queries = [
        query(f"max by (tidegate_upstream) (tidegate:{kind}:burn_rate{w}{{{UPSTREAM}}})", f"{{{{tidegate_upstream}}}} {w}")
        for w in windows
    ]
    panel = lines(title, description, *queries, unit="none")
    line = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
    return panel.thresholds(steps((None, GREEN), (6, ORANGE), (14.4, RED))).thresholds_style(line)


def figure(title, description, expr, unit="none", width=3, thresholds=None, no_value="0"):
    panel = (
        stat.Panel()
        .graph_mode(kinds.BigValueGraphMode.AREA)
        .color_mode(kinds.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(no_value)
        .thresholds(thresholds or steps((None, BLUE)))
    )
    return finish(panel, title, description, unit, width, 4, [query(expr)])


def overview():
    bad_at_all = steps((None, GREEN), (1, RED))
    return [
        figure(
            "Requests",
            "Requests a second for which admission was decided.",
            f"sum({rate('tidegate_requests_total')})",
            "reqps",
            width=4,
        ),
        figure(
            "Shed",
            "Share of the requests that the filter shed.",
            f"sum({rate('tidegate_requests_shed_total')}) / sum({rate('tidegate_requests_total')})",
            "percentunit",
            width=4,
            thresholds=steps((None, GREEN), (0.01, YELLOW), (0.1, ORANGE)),
        ),
        figure(
            "Breakers not closed",
            "Open and half-open breakers, counted per proxy and upstream.",
            f"count(tidegate_breaker_state{{{FILTER}}} > 0)",
            thresholds=bad_at_all,
        ),
        figure(
            "Worst burn rate, 1 h",
            "Burn rate of the failure budget, for the worst upstream: 1 spends exactly the budget.",
            f"max(tidegate:unavailable:burn_rate1h{{{UPSTREAM}}})",
            width=4,
            thresholds=steps((None, GREEN), (1, YELLOW), (14.4, RED)),
        ),
        figure(
            "Faults of the filter",
            "Faults of the filter itself in the last hour, at all proxies. The requests passed.",
            'sum(increase(tidegate_faults_total{instance=~"$instance"}[1h]))',
            thresholds=bad_at_all,
        ),
        figure(
            "Proxies on another configuration",
            "Proxies that do not run the wanted configuration yet, or have rejected it.",
            'sum(tidegate_control_resources{state=~"behind|rejected"})',
            thresholds=bad_at_all,
        ),
        figure(
            "Policies off",
            "Policies in force that let every request pass: those with `enabled: false`, or all of them, by the switch for all policies.",
            "max(sum by (instance) (tidegate_control_policies) and on (instance) tidegate_control_disabled == 1)"
            " or max(tidegate_control_policies_disabled)",
            thresholds=bad_at_all,
        ),
    ]


def shedding():
    told_apart_by = ["tidegate_upstream", "tidegate_reason", "instance"]
    return [
        lines(
            "Shed, by reason",
            "Why. limit: the concurrency limit is reached. criticality: more important requests get the places. retry: "
            "first attempts of its class get them. deadline: the caller waits for less time than nearly all answers take. "
            "max_open: limit.maxOpen is reached. "
            "breaker_open: the breaker found the upstream dead. breaker_half_open: it is being probed.",
            query(f"sum by (tidegate_reason) ({rate('tidegate_requests_shed_total')})", "{{tidegate_reason}}"),
            stack=True,
            names=REASONS,
        ),
        lines(
            "Share shed, by upstream",
            "The ten upstreams that lose the greatest share of their requests.",
            query(
                f"topk(10, sum by (tidegate_upstream) ({rate('tidegate_requests_shed_total')})"
                f" / sum by (tidegate_upstream) ({rate('tidegate_requests_total')}))",
                "{{tidegate_upstream}}",
            ),
            unit="percentunit",
        ),
        shed_table(told_apart_by),
        lines(
            "Would have been shed, by reason",
            "Admitted and counted: in mode observe, and for the share that `enforcement` leaves out. Enforcing would shed them.",
            query(f"sum by (tidegate_reason) ({rate('tidegate_requests_would_shed_total')})", "{{tidegate_reason}}"),
            stack=True,
            names=REASONS,
        ),
        lines(
            "Share that would have been shed, by upstream",
            "The ten upstreams that would lose the greatest share of their requests in mode enforce.",
            query(
                f"topk(10, max by (tidegate_upstream) (tidegate:would_shed:ratio5m{{{UPSTREAM}}}))",
                "{{tidegate_upstream}}",
            ),
            unit="percentunit",
        ),
        lines(
            "Admitted although shedding was due",
            "spared: `shed.maxShare` was reached. health checks: never shed.",
            query(f"sum({rate('tidegate_requests_spared_total')})", "spared"),
            query(f"sum({rate('tidegate_requests_exempt_total')})", "health checks"),
        ),
    ]


def shed_table(labels):
    panel = table.Panel().sort_by([common.TableSortByFieldState().display_name("shed/s").desc(True)]).filterable(True)
    panel = panel.with_transformation(
        model.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": {"Time": True},
                "renameByName": {"tidegate_upstream": "upstream", "tidegate_reason": "reason", "instance": "proxy", "Value": "shed/s"},
            },
        )
    )
    expr = f"sum by ({', '.join(labels)}) ({rate('tidegate_requests_shed_total')}) > 0"
    return finish(
        panel,
        "Shed now: where and why",
        "Requests a second, as of the end of the time range.",
        "reqps",
        24,
        7,
        [query(expr, instant=True)],
    )


def limits():
    return [
        lines(
            "In flight against the limit",
            "Summed over the proxies. Requests are shed while in-flight reaches the limit; a limit far above it has no effect.",
            query(f"sum by (tidegate_upstream) (tidegate_in_flight{{{FILTER}}})", "{{tidegate_upstream}} in flight"),
            query(f"sum by (tidegate_upstream) (tidegate_limit{{{FILTER}}})", "{{tidegate_upstream}} limit"),
            unit="none",
        ),
        lines(
            "Utilization of the limit",
            "The fullest proxy of each upstream.",
            query(
                f"max by (tidegate_upstream) (tidegate_in_flight{{{FILTER}}} / tidegate_limit{{{FILTER}}})",
                "{{tidegate_upstream}}",
            ),
            unit="percentunit",
        ),
        lines(
            "Latency against the baseline",
            "Latency to the moment that the objective measures: its quantile in the last window, and the learned mean without a queue.",
            query(f"max by (tidegate_upstream) (tidegate_sample_rtt_us{{{FILTER}}})", "{{tidegate_upstream}} now"),
            query(f"max by (tidegate_upstream) (tidegate_baseline_rtt_us{{{FILTER}}} > 0)", "{{tidegate_upstream}} baseline"),
            unit="µs",
        ),
        lines(
            "Changes of the reason for the limit",
            "Changes an hour. cruise: no queue stands. hold: a queue stands. below_one: a queue stands, and the proxy's share is less than one request. load_failures: failures that load causes. bounds: the policy's.",
            query(
                f"sum by (tidegate_reason) (increase(tidegate_limit_changes_total{{{FILTER}}}[1h]))", "{{tidegate_reason}}"
            ),
            unit="none",
        ),
    ]


def breakers():
    states = {"0": ("closed", GREEN), "1": ("half-open", YELLOW), "2": ("open", RED)}
    mapping = model.ValueMap(
        options={
            value: model.ValueMappingResult(text=text, color=color, index=int(value))
            for value, (text, color) in states.items()
        }
    )
    timeline = finish(
        statetimeline.Panel()
        .mappings([mapping])
        .merge_values(True)
        .show_value(kinds.VisibilityMode.NEVER)
        .thresholds(steps((None, GREEN), (1, YELLOW), (2, RED))),
        "Breaker states",
        "The worst state among the proxies, for each upstream.",
        "none",
        24,
        8,
        [query(f"max by (tidegate_upstream) (tidegate_breaker_state{{{FILTER}}})", "{{tidegate_upstream}}")],
    )
    return [
        timeline,
        lines(
            "Trips, by reason",
            "Openings an hour. consecutive_failures: failures without successes. low_success_rate: too many failures. hang: no answers. "
            "probe_failed: a probe failed, so the upstream is still down.",
            query(
                f"sum by (tidegate_upstream, tidegate_reason) (increase(tidegate_breaker_trips_total{{{FILTER}}}[1h]))",
                "{{tidegate_upstream}} {{tidegate_reason}}",
            ),
            unit="none",
            width=8,
        ),
        lines(
            "Open interval",
            "How long a breaker stays open before the next probe; it grows with the age of the outage.",
            query(f"max by (tidegate_upstream) (tidegate_open_interval_ms{{{FILTER}}})", "{{tidegate_upstream}}"),
            unit="ms",
            width=8,
        ),
        lines(
            "Probes and transitions",
            "Requests admitted by half-open breakers, and the states that breakers entered.",
            query(f"sum({rate('tidegate_probes_total')})", "probes"),
            query(f"sum by (tidegate_to) ({rate('tidegate_breaker_transitions_total')})", "to {{tidegate_to}}"),
            unit="ops",
            width=8,
        ),
    ]


def objectives():
    return [
        burn(
            "Burn rate: failures and sheds",
            "1 spends exactly the budget. Sheds of the sheddable classes do not count. Alerts: above 14.4 in 1 h and 5 m, above 6 in 6 h and 30 m.",
            "unavailable",
        ),
        burn("Burn rate: late answers", "Answers after the objective's latency target, against 1 - quantile.", "slow"),
        lines(
            "Outcomes",
            "Outcomes of completed requests. stale: begun before the breaker's last transition. ignored: says nothing about the upstream, such as a client error.",
            query(f"sum by (tidegate_outcome) ({rate('tidegate_outcomes_total')})", "{{tidegate_outcome}}"),
            stack=True,
            names=OUTCOMES,
        ),
        lines(
            "Share unavailable and late",
            "Shares of the requests that count.",
            query(
                f"max by (tidegate_upstream) (tidegate:unavailable:rate5m{{{UPSTREAM}}} / tidegate:valid:rate5m)",
                "{{tidegate_upstream}} unavailable",
            ),
            query(
                f"max by (tidegate_upstream) (tidegate:slow:rate5m{{{UPSTREAM}}} / tidegate:valid:rate5m)",
                "{{tidegate_upstream}} late",
            ),
            unit="percentunit",
        ),
    ]


def score():
    parts = {"latency": BLUE, "success": GREEN, "needless": ORANGE}
    return [
        lines(
            "Score of the ten worst upstreams",
            "0 to 1, over an hour: the mean of the scores for answers in time, answers with success, and few needless sheds. `tidegate score` "
            "gives the reasons, and adds CPU and memory of the proxies.",
            query(f"bottomk(10, min by (tidegate_upstream) (tidegate:score:composite{{{UPSTREAM}}}))", "{{tidegate_upstream}}"),
            unit="none",
        ),
        lines(
            "Parts of the score, for the worst upstream of each",
            "latency and success: 1 up to what the objective allows, 0 from ten times that on. needless: 0 where 5 % of the requests are shed "
            "while nothing was overloaded.",
            *[query(f"min(tidegate:score:{part}{{{UPSTREAM}}})", part) for part in parts],
            unit="none",
            names=parts,
        ),
    ]


def classes():
    return [
        lines(
            "Shed at the limit, by class",
            "Which classes lose requests. A breaker does not read the class, so its sheds are not included.",
            query(f"sum by (tidegate_criticality) ({rate('tidegate_class_shed_total')})", "{{tidegate_criticality}}"),
            stack=True,
            names=CLASSES,
            width=6,
        ),
        lines(
            "Share of each class that is shed",
            "Share of the requests whose class was read because the upstream was near its limit. Critical traffic should stay near 0 while there is sheddable traffic.",
            query(
                f"sum by (tidegate_criticality) ({rate('tidegate_class_shed_total')})"
                f" / sum by (tidegate_criticality) ({rate('tidegate_requests_ranked_total')})",
                "{{tidegate_criticality}}",
            ),
            unit="percentunit",
            names=CLASSES,
            width=6,
        ),
        lines(
            "Would have been shed, by class",
            "In mode observe, and beyond `enforcement`.",
            query(f"sum by (tidegate_criticality) ({rate('tidegate_class_would_shed_total')})", "{{tidegate_criticality}}"),
            stack=True,
            names=CLASSES,
            width=6,
        ),
        lines(
            "Shares of the classes, by sample",
            "In mode observe, with or without load: one request in 64 of each worker. One class alone means that callers send no class, or that no rule matches.",
            query(
                f"sum by (tidegate_criticality) ({rate('tidegate_class_sampled_total')})"
                f" / ignoring (tidegate_criticality) group_left sum({rate('tidegate_class_sampled_total')})",
                "{{tidegate_criticality}}",
            ),
            unit="percentunit",
            stack=True,
            names=CLASSES,
            width=6,
        ),
    ]


def machinery():
    proxy = 'instance=~"$instance"'
    return [
        lines(
            "Faults of the filter, by kind",
            "Faults an hour. The requests pass; Envoy's log has one line for each kind.",
            query(f"sum by (tidegate_kind) (increase(tidegate_faults_total{{{proxy}}}[1h]))", "{{tidegate_kind}}"),
            unit="none",
            width=6,
        ),
        lines(
            "Workers and upstreams",
            "VMs that take part (a fall means a crash), upstreams with their own state, and open requests that do not count as in flight.",
            query(f"sum(tidegate_workers{{{proxy}}})", "workers"),
            query(f"max(tidegate_upstreams{{{proxy}}})", "upstreams of the fullest proxy"),
            query(f"sum(tidegate_streams{{{FILTER}}})", "open requests"),
            unit="none",
            width=6,
        ),
        lines(
            "Proxies, by module and mode",
            "The version of the module and the mode of the configuration in force, as proxies report them in tidegate_info.",
            query(
                f"sum by (tidegate_version, tidegate_mode) (tidegate_info{{{proxy}}})",
                "{{tidegate_version}} {{tidegate_mode}}",
            ),
            unit="none",
            stack=True,
            width=6,
        ),
        lines(
            "Corrections and overflow",
            "In-flight counts removed after a crash, requests beyond `maxUpstreams`, and requests beyond `maxDestinations`, which pass.",
            query(f"sum({rate('tidegate_in_flight_reconciled_total')})", "in-flight corrected"),
            query(f"sum(rate(tidegate_upstreams_overflow_total{{{proxy}}}[$__rate_interval]))", "requests beyond maxUpstreams"),
            query(f"sum(rate(tidegate_destinations_overflow_total{{{proxy}}}[$__rate_interval]))", "requests beyond maxDestinations"),
            unit="ops",
            width=6,
        ),
        lines(
            "Proxies, by state of their configuration",
            "As the control service sees them: current, behind (sent, not answered), rejected.",
            query("sum by (state) (tidegate_control_resources)", "{{state}}"),
            unit="none",
            stack=True,
            names={"current": GREEN, "behind": YELLOW, "rejected": RED},
            width=6,
        ),
        lines(
            "Proxies, by the version that they run",
            "The most frequent versions, by their first digits. After a change, one grows as the other falls.",
            query("sum by (version) (tidegate_control_running)", "{{version}}"),
            unit="none",
            stack=True,
            width=6,
        ),
        lines(
            "From change to acceptance",
            "The 99th percentile of the pushes.",
            query("histogram_quantile(0.99, sum by (le) (rate(tidegate_control_push_seconds_bucket[$__rate_interval])))", "p99"),
            unit="s",
            width=6,
        ),
        lines(
            "Answers of proxies, and problems in policies",
            "accepted, rejected, stale: per hour.",
            query("sum by (verdict) (increase(tidegate_control_answers_total[1h]))", "{{verdict}}"),
            query("sum by (source) (tidegate_control_problems)", "problems from {{source}}"),
            unit="none",
            width=6,
        ),
    ]


def variables():
    def listed(name, label, metric, of):
        return (
            dashboard.QueryVariable(name)
            .label(label)
            .query(f"label_values({metric}, {of})")
            .datasource(SOURCE)
            .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(model.VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .all_value(".*")
            .current(model.VariableOption(text="All", value="$__all"))
        )

    return [
        dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        listed("upstream", "Upstream", "tidegate_requests_total", "tidegate_upstream"),
        listed("instance", "Proxy", "tidegate_workers", "instance"),
    ]


ROWS = [
    ("Now", overview),
    ("What is shed, where, and why", shedding),
    ("Who is hurt", classes),
    ("Limits", limits),
    ("Breakers", breakers),
    ("Objectives", objectives),
    ("The filter and the control service", machinery),
    ("Score", score),
]


def main():
    board = (
        dashboard.Dashboard("Tidegate")
        .uid(UID)
        .description("What Tidegate sheds, where, why, and which classes are affected. Needs dashboards/stats-tags and dashboards/prometheus.")
        .tags(["tidegate", "envoy"])
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
    )
    for variable in variables():
        board = board.with_variable(variable)
    number = 0
    for title, panels in ROWS:
        board = board.with_row(dashboard.Row(title))
        for panel in panels():
            number += 1
            board = board.with_panel(panel.id(number))
    json.dump(board.build(), sys.stdout, cls=JSONEncoder, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


main()
