#!/usr/bin/env python3
"""Checks the options that pages name: docs_flags.py PROGRAM, the built `tidegate`.

An option behind `tidegate SUBCOMMAND`, in a block or in inline code, must be in the help of that subcommand. A value behind `--set` of
Helm must be in the chart's values.schema.json. Decisions and baselines stay as they were written.
"""

import functools
import json
import re
import subprocess
import sys

import docs

SCHEMA = docs.ROOT / "manifests/chart/tidegate/values.schema.json"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# A program, its subcommand, and the rest up to a comment or the next command.
CALL = re.compile(r"(?:^|[\s(`/])tidegate(?:-new)? ([a-z]+)(?=\s|$)([^|;&#]*)")
SET = re.compile(r"--set(?:-string)?[ =]'?([\w.\[\]\\/-]+)=")


@functools.cache
def options(program, subcommand):
    """The options of a subcommand; none if there is no such subcommand."""
    helped = subprocess.run([program, subcommand, "--help"], capture_output=True, text=True, check=False)
    return frozenset(OPTION.findall(helped.stdout)) if helped.returncode == 0 else None


def has_value(schema, path):
    """Whether the chart has a value: where the schema leaves open what an object has, anything is one."""
    for name in re.findall(r"[^.\[\]]+", path.replace("\\.", "\0")):
        if name.isdecimal() and "items" in schema:
            schema = schema["items"]
        elif name in schema.get("properties", {}):
            schema = schema["properties"][name]
        else:
            rest = schema.get("additionalProperties", True)
            if rest is False:
                return False
            schema = rest if isinstance(rest, dict) else {}
    return True


def code(text):
    """The code of a page, with lines that go on joined to one; each with its number."""
    _, inline, fenced = docs.parts(text)
    begun = None
    for number, line in fenced:
        number, line = (begun[0], begun[1] + line) if begun else (number, line)
        begun = (number, line[:-1]) if line.endswith("\\") else None
        if not begun:
            yield number, line
    yield from inline


def wrong(program, text, schema):
    for number, line in code(text):
        for subcommand, rest in CALL.findall(line):
            known = options(program, subcommand)
            if known is None:
                # `tidegate is`, in a message or a prompt, is no call; one with options is.
                if OPTION.search(rest):
                    yield number, f"tidegate has no subcommand {subcommand}"
                continue
            for option in OPTION.findall(rest):
                if option not in known:
                    yield number, f"tidegate {subcommand} has no {option}"
        for path in SET.findall(line):
            if not has_value(schema, path):
                yield number, f"the chart has no value {path}"


def main():
    program, schema = sys.argv[1], json.loads(SCHEMA.read_text())
    pages = [page for page in docs.listed("*.md") if not str(page.relative_to(docs.ROOT)).startswith(docs.HISTORY)]
    found = [(page, number, what) for page in pages for number, what in wrong(program, page.read_text(), schema)]
    for page, number, what in found:
        print(f"{page.relative_to(docs.ROOT)}:{number}: {what}", file=sys.stderr)
    if found:
        sys.exit(f"docs_flags.py: error: {len(found)} options do not exist")
    print(f"docs_flags.py: the options in {len(pages)} pages exist", file=sys.stderr)


if __name__ == "__main__":
    main()
