#!/usr/bin/env python3
"""Checks that programs and tests are compiled from the same dependencies: ci/features.py

Cargo compiles a dependency once for each set of features, and tests enable more features than programs do. ci/features/Cargo.toml
names what only tests enable, and so counts for programs, too. This script fails when a feature is missing there.
"""

import subprocess
import sys

import circles

MANIFEST = "ci/features/Cargo.toml"


def tree(kinds):
    """All packages of the workspace and their features, as `cargo tree` finds them for this machine."""
    command = ["cargo", "tree", "--locked", "--workspace", "--no-dedupe", "--prefix", "none", "--format", "{p}\t{f}", "--edges", kinds]
    return subprocess.run(command, cwd=circles.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def packages(text):
    """The sets of features of each package: more than one where build scripts and programs want different ones."""
    found = {}
    for line in text.splitlines():
        name, _, features = line.partition("\t")
        if name:
            found.setdefault(name, set()).add(frozenset(features.removesuffix(" (*)").split(",")) - {""})
    return found


def complaints(programs, tests):
    """What is compiled twice: packages that programs use with features that the tests do not use them with."""
    for name, sets in programs.items():
        for features in sets - tests.get(name, set()):
            more = [other - features for other in tests.get(name, ()) if other > features]
            lacks = ", ".join(sorted(min(more, key=len))) if more else "another set of features"
            yield f"{name}: tests enable {lacks}, and programs do not: name it here"


def main():
    programs = packages(tree("normal,build"))
    wrong = list(complaints(programs, packages(tree("normal,build,dev"))))
    for line in wrong:
        print(f"{MANIFEST}: {line}")
    if wrong:
        sys.exit(1)
    print(f"programs and tests use the same features of {len(programs)} packages")


if __name__ == "__main__":
    main()
