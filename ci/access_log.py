#!/usr/bin/env python3
"""Checks that all access logs in dashboards/access-log have the same fields, and prints objects in them: ci/access_log.py [KIND]

The end-to-end tests load envoy.yaml into an Envoy and read what it logs. The others must say the same. KIND prints the objects of this
kind, for the checks of ci/manifests.sh: a file may also have values for a chart.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "dashboards/access-log"
FIRST = "envoy.yaml"
# A field in YAML or JSON: its value begins with a command of Envoy's.
FIELD = re.compile(r'^ *"?(\w+)"?: "(%[^"]*)",?$', re.MULTILINE)


def fields(text):
    """The fields of a file in their order."""
    return FIELD.findall(text)


def differences(files):
    """What is wrong with the fields of files, by name: nothing, if all are those of the first one."""
    expected = fields(files[FIRST])
    if not expected:
        yield f"{FIRST}: no field was found"
    for name, text in sorted(files.items()):
        found = fields(text)
        if found != expected:
            names = ", ".join(sorted({field for field, _ in set(found) ^ set(expected)})) or "the order"
            yield f"{name} is not as {FIRST}: {names}"


def objects(text, kind):
    """The objects of a kind in a file."""
    for document in re.split(r"^---\n", text, flags=re.MULTILINE):
        if re.search(rf"^kind: {kind}$", document, re.MULTILINE):
            yield document


def main():
    files = {path.name: path.read_text() for path in FOLDER.glob("*.yaml")}
    wrong = list(differences(files))
    if wrong:
        sys.exit("\n".join(f"access_log.py: error: {message}" for message in wrong))
    for kind in sys.argv[1:2]:
        found = [document for _, text in sorted(files.items()) for document in objects(text, kind)]
        if not found:
            sys.exit(f"access_log.py: error: no file has an object of kind {kind}")
        print("---\n".join(found), end="")


if __name__ == "__main__":
    main()
