#!/usr/bin/env python3
"""Writes the queries of the documents as recording rules, so that promtool can read them: ci/promql.py >FILE

A query is a fenced block marked `promql`. The name of its rule says where it is: `docs:objective:2` is the second query of
docs/objective.md. ci/promql_test.yaml tests some of them by these names.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^( *)```promql\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def queries(text):
    """The queries of a page in their order."""
    return [query for _, query in FENCE.findall(text)]


def record(page, number):
    """The name of the rule for one query of a page."""
    return re.sub(r"[^A-Za-z0-9:]", "_", page.removesuffix(".md").replace("/", ":")) + f":{number}"


def rules(pages):
    """The rules for pages, by name; as JSON, which is YAML too."""
    found = [{"record": record(name, number), "expr": query} for name, text in pages for number, query in enumerate(queries(text), 1)]
    return {"groups": [{"name": "documents", "interval": "30s", "rules": found}]}


def main():
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    pages = [(name, (ROOT / name).read_text()) for name in sorted(names) if name and (ROOT / name).exists()]
    marked = sum(len(re.findall(r"^ *```promql", text, re.MULTILINE)) for _, text in pages)
    found = rules(pages)
    if len(found["groups"][0]["rules"]) != marked:
        sys.exit(f"promql.py: error: {marked} blocks are marked promql, and {len(found['groups'][0]['rules'])} were read: is a fence not closed?")
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
