#!/usr/bin/env python3
"""Holds the rules of the chart's roles to the table of rights in docs/kubernetes.md: no more, no less."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "manifests/chart/tidegate/templates/_rules.tpl"
PAGE = ROOT / "docs/kubernetes.md"


def words(text):
    return {word.strip(" `") for word in text.split(",")}


def granted():
    rule = r"- apiGroups: \[(.*)\]\n  resources: \[(.*)\]\n(?:  resourceNames: .*\n)?  verbs: \[(.*)\]"
    for group, resources, verbs in re.findall(rule, RULES.read_text()):
        for resource in words(resources):
            yield from ((group, resource, verb) for verb in words(verbs))


def needed():
    row = r"^\| `([a-z0-9.]+)` \| ((?:`[a-z/]+`(?:, )?)+) \| ([a-z, ]+) \|"
    for group, resources, verbs in re.findall(row, PAGE.read_text(), re.MULTILINE):
        for resource in words(resources):
            yield from ((group, resource, verb) for verb in words(verbs))


def main():
    if not PAGE.exists():
        print("rights.py: docs/kubernetes.md is not there: the rights are not compared", file=sys.stderr)
        return
    has, needs = set(granted()), set(needed())
    wrong = [f"{RULES.name} grants {right}, which docs/kubernetes.md does not name" for right in sorted(has - needs)]
    wrong += [f"{RULES.name} lacks {right}, which docs/kubernetes.md names" for right in sorted(needs - has)]
    if wrong or not needs:
        sys.exit("\n".join(f"rights.py: error: {line}" for line in wrong or ["docs/kubernetes.md names no rights"]))
    print(f"rights.py: {len(has)} rights, as docs/kubernetes.md says", file=sys.stderr)


if __name__ == "__main__":
    main()
