#!/usr/bin/env python3
"""Judges the scenarios with adversaries, and writes their figures where documents show them.

    ci/adversaries.py scenarios                    their names, separated by commas
    ci/adversaries.py others                       the names of all other scenarios
    ci/adversaries.py judge COMPARE [--write]      a table, the targets, and `N passed, N failed`
    ci/adversaries.py check                        whether the page says what the record says

COMPARE is the `compare.json` of `tidegate-sim compare`. With --write the medians go to sim/adversaries.json, and from there
to the tables of docs/can-this-make-things-worse.md.
"""

import json
import re
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "sim/scenarios"
RECORD = ROOT / "sim/adversaries.json"
PAGE = ROOT / "docs/can-this-make-things-worse.md"
CONTENDERS = {
    "tidegate": "Tidegate",
    "none": "none",
    "adaptive-concurrency": "adaptive_concurrency",
    "hystrix": "breaker by failures",
}
# The least score of all others, by the beginning of a scenario's name; the first that fits counts. The other kinds have no target:
# what is cancelled leaves work behind that no proxy sees, and who may claim to be important is the policy's choice.
TARGETS = {
    "adversary-agent-flood": 0.9,
    "flood-2x": 0.9,
    "adversary-agent": 0.97,
    "adversary-cohort": 0.97,
    "adversary-crash": 0.95,
    "adversary-deadlines": 0.97,
    "adversary-quota": 0.97,
    "adversary-uploads": 0.97,
}
# These include an outage. Most requests are lost while the service recovers from it.
WITHOUT = ("adversary-quota-outage", "adversary-liar-outage")
# What differs by less is chance: medians of two sets of three seeds differ by as much.
CHANCE = 0.01
# A filter of another kind is better here or there by little; this is worth a line.
MUCH = 0.03


def fail(text):
    raise SystemExit(f"adversaries.py: error: {text}")


def names():
    files = [*SCENARIOS.glob("adversary-*.toml"), *SCENARIOS.glob("flood-2x*.toml")]
    return sorted(path.stem for path in files)


def others():
    return sorted({path.stem for path in SCENARIOS.glob("*.toml")} - set(names()))


def target(name):
    if name in WITHOUT:
        return None
    return next((least for start, least in TARGETS.items() if name.startswith(start)), None)


def story(name):
    """What the adversary does, and what the others send as a multiple of the capacity."""
    scenario = tomllib.loads((SCENARIOS / f"{name}.toml").read_text())
    what = re.sub(r", beside .*$", "", scenario["title"])
    return what, scenario["clients"][0]["load"][0]["x"]


def scores(path):
    """The median score of each scenario with each contender, in the order of kinds and loads."""
    found = defaultdict(lambda: defaultdict(list))
    for run in json.loads(Path(path).read_text())["runs"]:
        found[run["scenario"]][run["contender"]].append(run["figures"]["score"])
    lacking = [f"{name} {one}" for name in names() for one in CONTENDERS if not found[name][one]]
    if lacking:
        fail(f"{path} lacks " + ", ".join(lacking))
    first = {}
    for name in names():
        first.setdefault(story(name)[0], name)
    order = sorted(names(), key=lambda name: (first[story(name)[0]], story(name)[1]))
    return {name: {one: round(statistics.median(found[name][one]), 3) for one in CONTENDERS} for name in order}


def verdict(name, figures):
    least = target(name)
    if least is None:
        return "-"
    return f"{least} met" if figures["tidegate"] >= least else f"{least} MISSED"


def table(record):
    lines = [
        "| adversary | others send | " + " | ".join(CONTENDERS.values()) + " | target |",
        "|---" * (len(CONTENDERS) + 3) + "|",
    ]
    for name, figures in record["scores"].items():
        what, load = story(name)
        cells = [what, f"{load:g} x"]
        cells += [f"{figures[one]:.3f}" for one in CONTENDERS]
        lines.append("| " + " | ".join([*cells, verdict(name, figures)]) + " |")
    return lines


def worse(record):
    """The rows in which doing nothing is better by more than chance, the worst first."""
    rows = [(figures["none"] - figures["tidegate"], name, figures) for name, figures in record["scores"].items()]
    rows = sorted((row for row in rows if row[0] > CHANCE), key=lambda row: -row[0])
    lines = ["| adversary | others send | Tidegate | none | lost |", "|---|---|---|---|---|"]
    for lost, name, figures in rows:
        what, load = story(name)
        lines.append(f"| {what} | {load:g} x | {figures['tidegate']:.3f} | {figures['none']:.3f} | {lost:.3f} |")
    return lines


def behind(record):
    """The rows in which another filter is better by much, the worst first."""
    rows = []
    for name, figures in record["scores"].items():
        best = max((one for one in CONTENDERS if one not in ("tidegate", "none")), key=figures.get)
        rows.append((figures[best] - figures["tidegate"], name, best))
    rows = sorted((row for row in rows if row[0] > MUCH), key=lambda row: -row[0])
    lines = ["| adversary | others send | Tidegate | best other filter |", "|---|---|---|---|"]
    for _, name, best in rows:
        what, load = story(name)
        figures = record["scores"][name]
        lines.append(f"| {what} | {load:g} x | {figures['tidegate']:.3f} | {figures[best]:.3f} ({CONTENDERS[best]}) |")
    return lines


def provenance(record):
    return [f"Commit {record['commit']}, {record['seeds']} seeds, the median; {len(record['scores'])} scenarios."]


def written(record):
    """The page as the record says."""
    text = PAGE.read_text()
    blocks = {"played": provenance(record), "worse": worse(record), "behind": behind(record), "scores": table(record)}
    for name, lines in blocks.items():
        pattern = re.compile(rf"(<!-- {name}: ci/adversaries\.py -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = pattern.subn(lambda found: "\n".join([found[1], *lines, "", found[2]]), text)
        if count != 1:
            fail(f"{PAGE.relative_to(ROOT)}: found {count} places for {name}, expected 1")
    return text


def judge(path, is_written):
    found = scores(path)
    commit = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    runs = [run for run in json.loads(Path(path).read_text())["runs"] if run["contender"] == "tidegate"]
    record = {"commit": commit.stdout.strip(), "seeds": len(runs) // len(found), "scores": found}
    print("\n".join(table(record)))
    judged = [(name, figures["tidegate"], target(name)) for name, figures in found.items() if target(name) is not None]
    missed = [one for one in judged if one[1] < one[2]]
    for name, score, least in missed:
        print(f"MISSED {name}: found {score:.3f}, expected at least {least}")
    if is_written:
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        PAGE.write_text(written(record))
        print(f"wrote {RECORD.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")
    print(f"{len(judged) - len(missed)} passed, {len(missed)} failed")
    return 1 if missed else 0


def check():
    record = json.loads(RECORD.read_text())
    strangers = set(record["scores"]) ^ set(names())
    if strangers:
        fail(f"{RECORD.relative_to(ROOT)} and sim/scenarios differ in {', '.join(sorted(strangers))}; make sim-adversaries ARGS=--write")
    if written(record) != PAGE.read_text():
        fail(f"{PAGE.relative_to(ROOT)} is not what {RECORD.relative_to(ROOT)} says; make sim-adversaries ARGS=--write")
    print(f"adversaries.py: {PAGE.relative_to(ROOT)} agrees with {len(record['scores'])} scenarios", file=sys.stderr)


def main(words):
    match words:
        case ["scenarios"]:
            print(",".join(names()))
        case ["others"]:
            print(",".join(others()))
        case ["contenders"]:
            print(",".join(CONTENDERS))
        case ["judge", path]:
            return judge(path, False)
        case ["judge", path, "--write"]:
            return judge(path, True)
        case ["check"]:
            check()
        case _:
            fail("usage: ci/adversaries.py scenarios | others | contenders | judge COMPARE [--write] | check")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
