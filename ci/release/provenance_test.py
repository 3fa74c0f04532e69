#!/usr/bin/env python3
"""Whether the provenance of a release is a statement about its files: ci/release/provenance_test.py FOLDER VERSION [COMMIT]"""

import hashlib
import json
import sys
from pathlib import Path

folder, version = Path(sys.argv[1]), sys.argv[2]
statement = json.loads((folder / "provenance.json").read_text())
assert statement["_type"] == "https://in-toto.io/Statement/v1", statement["_type"]
assert statement["predicateType"] == "https://slsa.dev/provenance/v1", statement["predicateType"]
named = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
files = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}
for name in ("SHA256SUMS", "provenance.json"):
    del files[name]
wrong = {name for name in files if named.get(name) != files[name]}
assert not wrong, f"not as the provenance says: {sorted(wrong)}"
images = {name: digest for name, digest in named.items() if name not in files}
digests = dict(line.split() for line in (folder / "digests").read_text().splitlines())
assert sorted(images.values()) == sorted(one.removeprefix("sha256:") for one in digests.values()), images
definition = statement["predicate"]["buildDefinition"]
assert definition["externalParameters"]["version"] == version, definition
for commit in sys.argv[3:]:
    assert definition["resolvedDependencies"][0].get("digest") == {"gitCommit": commit}, definition
assert all(one["uri"] for one in definition["resolvedDependencies"]), definition
assert statement["predicate"]["runDetails"]["builder"]["id"], statement
print(f"{len(files)} files and {len(images)} images")
