"""Checks a Grafana dashboard for what its schema and its reader need: ci/dashboards.py FILE.

Run by ci/grafana.sh. Read by the SDK's types, which Grafana's schema generates, and written again: a field that the
schema does not know would be lost on the way. Besides: a stable uid, panels with a description and an id of their own,
no overlap on the grid, a reference for each query, and no data source but the variable.
"""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

UID = "tidegate"
WIDTH = 24


def lost(before, after, path="$"):
    """Where `after` lacks what `before` has."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"{path}.{key} is unknown to Grafana's schema"
            else:
                yield from lost(value, after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after)):
            yield from lost(*pair, f"{path}[{number}]")
    elif before != after:
        yield f"{path}: found {before!r}, Grafana's schema makes {after!r} of it"


def overlaps(panels):
    taken = {}
    for panel in panels:
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            if x >= WIDTH:
                yield f"panel {panel['title']!r} leaves the grid"
            for y in range(at["y"], at["y"] + at["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if other != panel["title"]:
                    yield f"panels {other!r} and {panel['title']!r} overlap"


def wrong(board):
    if board.get("uid") != UID:
        yield f"uid: found {board.get('uid')!r}, expected {UID!r}: links hold on to it"
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    if len({panel["id"] for panel in panels}) != len(panels):
        yield "panels share an id"
    for panel in panels:
        targets = panel.get("targets", [])
        if not panel.get("description") or not targets:
            yield f"panel {panel['title']!r} has no description or no query"
        if len({target["refId"] for target in targets}) != len(targets):
            yield f"panel {panel['title']!r} has two queries with one refId"
        for part in [panel, *targets]:
            if part["datasource"]["uid"] != "$datasource":
                yield f"panel {panel['title']!r} has the data source {part['datasource']['uid']!r}, expected the variable"
    yield from sorted(set(overlaps(board["panels"])))


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        board = json.load(file)
    register_default_plugins()
    again = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))
    errors = [*lost(board, again), *wrong(board)]
    for error in errors:
        print(f"{path}: {error}", file=sys.stderr)
    sys.exit(1 if errors else 0)


main()
