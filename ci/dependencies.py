#!/usr/bin/env python3
"""Checks that docs/dependencies.md has a row for each direct dependency of the workspace, with the crates that use it, and no other.

The reasons in the rows are a person's; the first two columns are those of the manifests. Crates of the workspace need no row.
"""

import re
import sys
import tomllib
from collections import defaultdict

import circles

PAGE = circles.ROOT / "docs/dependencies.md"
ROW = re.compile(r"^\| `([\w-]+)` \| (.*?) \| (.+) \|$", re.MULTILINE)
KINDS = ("dependencies", "build-dependencies", "dev-dependencies")


def users(manifests):
    """Each dependency and who uses it, as the page writes it; `manifests` are parsed manifests by the folder of their crate."""
    found = defaultdict(dict)
    for folder, manifest in manifests.items():
        for table in (manifest, *manifest.get("target", {}).values()):
            for kind in KINDS:
                for name, value in table.get(kind, {}).items():
                    if not name.startswith("tidegate-"):
                        package = value.get("package", name) if isinstance(value, dict) else name
                        is_for_tests = kind == "dev-dependencies"
                        found[package][folder] = found[package].get(folder, True) and is_for_tests
    return {name: ", ".join(f"({folder})" if for_tests else folder for folder, for_tests in sorted(by.items())) for name, by in found.items()}


def declared():
    """The dependencies of the workspace."""
    return users({member: tomllib.loads((circles.ROOT / member / "Cargo.toml").read_text()) for member in circles.members()})


def complaints(expected, text):
    """What is wrong in the page's text."""
    rows = [(name, by) for name, by, _ in ROW.findall(text)]
    for name in sorted(expected.keys() - dict(rows).keys()):
        yield f"{name} has no row: say why it is needed ({expected[name]})"
    for number, (name, by) in enumerate(rows):
        if name in dict(rows[:number]):
            yield f"{name} has two rows"
        elif name not in expected:
            yield f"{name} is not a dependency any longer"
        elif by != expected[name]:
            yield f"{name} is used by {expected[name]}, not by {by}"


def main():
    expected = declared()
    wrong = list(complaints(expected, PAGE.read_text()))
    for line in wrong:
        print(f"docs/dependencies.md: {line}")
    if wrong:
        sys.exit(1)
    print(f"docs/dependencies.md has a reason for each of {len(expected)} dependencies")


if __name__ == "__main__":
    main()
