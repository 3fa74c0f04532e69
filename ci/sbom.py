#!/usr/bin/env python3
"""Writes what the module is made of, as CycloneDX 1.5 in JSON: ci/sbom.py MODULE OUT

The crates are those that cargo compiles into the filter for its target, with their licences and the
checksums of Cargo.lock. No time and no serial number stand in it, so that the same sources give the same
bytes; `cosign attest --type cyclonedx` binds it to the image.
"""

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "wasm32-wasip1"
PACKAGE = "tidegate-filter"


def metadata():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def checksums():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}


def compiled(graph, start):
    """The packages that run in the module: by normal dependencies, without those of build scripts and macros."""
    nodes = {node["id"]: node for node in graph["resolve"]["nodes"]}
    macros = {
        package["id"]
        for package in graph["packages"]
        if any("proc-macro" in target["kind"] for target in package["targets"])
    }
    needs, waiting = {}, [start]
    while waiting:
        one = waiting.pop()
        if one in needs:
            continue
        needs[one] = sorted(
            dependency["pkg"]
            for dependency in nodes[one]["deps"]
            if dependency["pkg"] not in macros and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        )
        waiting += needs[one]
    return needs


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, sums):
    entry = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package.get("license"):
        # The old way of writing a choice.
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package.get("repository"):
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def main():
    if len(sys.argv) != 3:
        sys.exit("sbom.py: error: usage: ci/sbom.py MODULE OUT")
    module, graph, sums = Path(sys.argv[1]).read_bytes(), metadata(), checksums()
    packages = {package["id"]: package for package in graph["packages"]}
    start = next(one for one, package in packages.items() if package["name"] == PACKAGE)
    needs = compiled(graph, start)
    root = component(packages[start], sums) | {
        "type": "application",
        "name": "tidegate.wasm",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(module).hexdigest()}],
    }
    others = sorted((packages[one] for one in needs if one != start), key=purl)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root},
        "components": [component(package, sums) for package in others],
        "dependencies": [
            {"ref": purl(packages[one]), "dependsOn": [purl(packages[other]) for other in needs[one]]}
            for one in sorted(needs, key=lambda one: purl(packages[one]))
        ],
    }
    Path(sys.argv[2]).write_text(json.dumps(bom, indent=2) + "\n")
    print(f"sbom.py: {len(others)} crates in {sys.argv[2]}", file=sys.stderr)


if __name__ == "__main__":
    main()
