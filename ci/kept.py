#!/usr/bin/env python3
"""Whether the chart's PodMonitor keeps every metric that the rules and the dashboard name.

What it drops is missing without an error: a panel stays empty, an alert never fires.
"""

import re
import sys

MONITOR = "manifests/chart/tidegate/templates/podmonitor.yaml"
READERS = ("dashboards/prometheus/rules.yaml", "dashboards/grafana/dashboard.py")
KEPT = re.compile(r"sourceLabels: \[__name__\]\n\s+regex: (.+)")
# A selector by pattern stands for any name that matches it.
BY_PATTERN = re.compile(r'__name__=~\\?"([^"\\]+)\\?"')
NAME = re.compile(r"\b(?:tidegate|envoy)_[a-z0-9_]+\b")


def read(path):
    with open(path, encoding="utf-8") as file:
        return "\n".join(line for line in file.read().splitlines() if not line.strip().startswith("#"))


def main():
    kept = KEPT.search(read(MONITOR))
    names = set()
    for path in READERS:
        text = read(path)
        names |= {pattern.replace(".*", "any") for pattern in BY_PATTERN.findall(text)}
        names |= set(NAME.findall(BY_PATTERN.sub("", text)))
    if kept is None or not names:
        sys.exit(f"{MONITOR}: found {kept and kept[1]!r} for {len(names)} metrics, expected a pattern and metrics")
    # Prometheus anchors patterns.
    dropped = sorted(name for name in names if not re.fullmatch(kept[1], name))
    if dropped:
        sys.exit(f"{MONITOR} drops what {' or '.join(READERS)} names: {', '.join(dropped)}")


main()
