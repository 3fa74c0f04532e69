#!/usr/bin/env python3
"""Finds names of types that several files of the workspace define.

A reader who meets `Registry` should not have to ask which one. The script reads production code, not tests and not modules
named `fake`: `struct`, `enum`, `union`, `trait` and `type`, public or not. Definitions in one file are allowed, because they are
twins of which `#[cfg]` compiles one. So are associated types, and types inside a function.

ci/names.py [CRATE...]: all crates if none is named, each by its folder.
"""

import re
import sys
from collections import defaultdict

import circles

DEFINITION = re.compile(r"\b(?:struct|enum|union|trait|type)\s+(\w+)")


def types(code):
    """The names of the types that a module itself defines, not the blocks in it."""
    while (flat := re.sub(r"\{[^{}]*\}", ";", code)) != code:
        code = flat
    return DEFINITION.findall(code)


def repeated(crates):
    """Names that several files define, each with these files."""
    found = defaultdict(set)
    for path, module in (entry for crate in crates for entry in crate.modules.items()):
        for name in types(module.body) if "fake" not in path else ():
            found[name].add(module.file)
    return {name: sorted(files) for name, files in sorted(found.items()) if len(files) > 1}


def main(names):
    if unknown := set(names) - set(circles.members()):
        sys.exit(f"names.py: no crate {', '.join(sorted(unknown))}; there are {', '.join(circles.members())}")
    wrong = repeated(circles.Crate(root) for member in names or circles.members() for root in circles.roots(circles.ROOT / member))
    for name, files in wrong.items():
        print(f"{name} is defined in {', '.join(str(file.relative_to(circles.ROOT)) for file in files)}")
    if wrong:
        sys.exit("names.py: rename all but one definition of each")
    print("each name of a type is defined in one file")


if __name__ == "__main__":
    main(sys.argv[1:])
