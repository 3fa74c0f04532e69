#!/usr/bin/env python3
"""Writes the tables of docs/bench.md, and the one of README.md, from the committed journals of the benchmark.

loadtests/baselines/bench is one pass of all scenarios with all contenders, loadtests/baselines/bench-tidegate three runs of
each with Tidegate alone. With --check it only says whether the documents agree with them.
"""

import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ONE_PASS, THREE_RUNS = (ROOT / "loadtests/baselines" / name / "runs.jsonl" for name in ("bench", "bench-tidegate"))
VARIANTS = {
    "tidegate": "Tidegate",
    "static-tuned": "static, tuned",
    "adaptive-concurrency": "adaptive_concurrency",
    "admission-control": "admission_control",
    "both": "both",
    "outlier": "outlier detection",
    "static-default": "static, defaults",
    "none": "none",
}
THREE = "Tidegate, three runs"
README = {
    "steady": "steady at 0.7 x capacity",
    "overload-2x": "overload at 2 x",
    "step": "step 0.7 -> 3 -> 0.7 x",
    "capacity-halves": "capacity halves, and returns",
    "outage": "outage of 10 s, fast 500s",
    "brownout": "brownout: 30 % errors, 20 % delayed by 500 ms",
    "retry-storm": "retry storm after a 5 s spike",
    "bursts": "bursts of 50 ms at 6 x",
}
README_VARIANTS = ("adaptive-concurrency", "admission-control", "outlier", "none")


def fail(text):
    raise SystemExit(f"bench-tables.py: error: {text}")


def runs(path):
    """Figures by scenario and contender, one for each repetition; scenarios in their order."""
    found = defaultdict(lambda: defaultdict(list))
    if not path.exists():
        fail(f"{path.relative_to(ROOT)} is not there; it is a journal of make bench")
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            outcome = json.loads(line)["outcome"]
            found[outcome["scenario"]][outcome["variant"]].append(outcome["figures"])
        except (ValueError, KeyError) as error:
            fail(f"{path.relative_to(ROOT)}:{number}: expected a run of make bench, {error!r}")
    return found


def median(figures, measure, form):
    values = [value for value in map(measure, figures) if value is not None]
    return form(statistics.median(values)) if values else "-"


def score(figures):
    return figures["score"]


def p99(figures):
    return figures["admitted_p99_ms"] if figures["good"] else None


def reached(figures):
    offered = figures["offered_while_down"]
    return 100 * figures["reached"]["received_while_down"] / offered if offered else None


def critical(figures):
    return figures["success_by_criticality"].get("critical")


def as_score(value):
    return "0" if value < 0.0005 else f"{value:.3f}"


def table(one, three, measure, form, wanted):
    scenarios = [name for name in one if wanted(one[name]["tidegate"][0])]
    lines = ["| scenario | " + " | ".join([THREE, *VARIANTS.values()]) + " |", "|---" * (len(VARIANTS) + 2) + "|"]
    for name in scenarios:
        cells = [median(three[name]["tidegate"], measure, form)]
        cells += [median(one[name][variant], measure, form) for variant in VARIANTS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def readme(one, three):
    """Some scenarios and contenders; Tidegate by the medians of its three runs."""
    heads = ["Tidegate", *(VARIANTS[variant] for variant in README_VARIANTS)]
    lines = ["| scenario | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]

    def row(label, name, measure):
        def form(value):
            return "0" if value < 0.005 else f"{value:.2f}"

        cells = [median(three[name]["tidegate"], measure, form)]
        cells += [median(one[name][variant], measure, form) for variant in README_VARIANTS]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")

    for name, label in README.items():
        row(label, name, score)
    row("critical requests in 5 x the capacity", "critical-5x", critical)
    return lines


def replace(text, name, lines, path):
    pattern = re.compile(rf"(<!-- {name}: ci/bench-tables\.py -->\n).*?(<!-- end -->)", re.DOTALL)
    fresh, count = pattern.subn(lambda found: "\n".join([found[1], *lines, "", found[2]]), text)
    if count != 1:
        fail(f"{path.relative_to(ROOT)}: found {count} places for the table {name}, expected 1")
    return fresh


def main(check):
    one, three = runs(ONE_PASS), runs(THREE_RUNS)
    missing = [f"{name} {variant}" for name in one for variant in VARIANTS if not one[name][variant]]
    missing += [f"{name} three times" for name in one if len(three[name]["tidegate"]) != 3]
    if missing:
        fail("the journals lack " + ", ".join(missing))
    always = lambda figures: True
    tables = {
        ROOT / "docs/bench.md": {
            "score": table(one, three, score, as_score, always),
            "p99": table(one, three, p99, lambda value: f"{value:.0f}", always),
            "reached": table(one, three, reached, lambda value: f"{value:.1f} %", reached),
            "critical": table(one, three, critical, as_score, lambda figures: critical(figures) is not None),
        },
        ROOT / "README.md": {"bench": readme(one, three)},
    }
    stale = []
    for path, of in tables.items():
        before = path.read_text()
        after = before
        for name, lines in of.items():
            after = replace(after, name, lines, path)
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(after)
    if check and stale:
        fail(", ".join(stale) + ": not what the journals say; ci/bench-tables.py writes the tables anew")
    print(f"bench-tables.py: {len(tables)} documents agree with {len(one)} scenarios of {len(VARIANTS)} contenders")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        fail("usage: ci/bench-tables.py [--check]")
    main(bool(sys.argv[1:]))
