#!/usr/bin/env python3
"""Writes what is in an image, as CycloneDX 1.5 in JSON.

    ci/sbom.py filter MODULE OUT     the module, whose checksum is in the list
    ci/sbom.py native TARGET MODULE OUT
                                     the native module for that target, with its checksum
    ci/sbom.py control OUT           the control service's image as docker/control.Dockerfile makes it
    ci/sbom.py release TARGET PROGRAM OUT
                                     the control service as a release has it, with the program's checksum

The crates are those that cargo compiles into the program for its target, with their licences and the
checksums of Cargo.lock; of the control service also the library of its page; of an image by Docker also its base image, by the
digest in its Dockerfile. What the base image is made of is not in the list, and the list says so. The image of a release has no base
image, but the certificates of public authorities. No time and no serial number stand in it, so that the same sources give the same bytes; `cosign attest --type cyclonedx` binds it to the image.
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What the image is built for, the package, and the name of what is in the image.
PROGRAMS = {
    "filter": ("wasm32-wasip1", "tidegate-filter", "tidegate.wasm"),
    "native": (None, "tidegate-native", "libtidegate.so"),
    "control": ("x86_64-unknown-linux-gnu", "tidegate-control", "tidegate"),
}
# What a Dockerfile makes an image of.
IMAGES = ("filter", "control")


def metadata(target):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
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


def base_image(program):
    """The last base image of a Dockerfile as a component; none where it starts from nothing."""
    text = (ROOT / f"docker/{program}.Dockerfile").read_text()
    last = re.findall(r"^FROM (\S+)", text, re.MULTILINE)[-1]
    if last == "scratch":
        return None
    name, digest = last.split("@sha256:")
    name, _, tag = name.rpartition(":")
    purl = f"pkg:oci/{name.rpartition('/')[2]}@sha256%3A{digest}?repository_url={name}&tag={tag}"
    hashes = [{"alg": "SHA-256", "content": digest}]
    return {"type": "container", "bom-ref": purl, "name": name, "version": tag, "purl": purl, "hashes": hashes}


def vendored():
    """The library that is a part of the page of the control service."""
    text = (ROOT / "ci/versions.env").read_text()
    version, checksum = (re.search(rf"^DAGRE_{key}=(.*)$", text, re.MULTILINE)[1] for key in ("VERSION", "SHA256"))
    purl = f"pkg:npm/%40dagrejs/dagre@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": "@dagrejs/dagre",
        "version": version,
        "purl": purl,
        "licenses": [{"expression": "MIT"}],
        "hashes": [{"alg": "SHA-256", "content": checksum}],
    }


def authorities():
    """The certificates of public authorities that are a part of the released image."""
    text = (ROOT / "ci/versions.env").read_text()
    version, checksum = (re.search(rf"^CERTIFI_{key}=(.*)$", text, re.MULTILINE)[1] for key in ("VERSION", "WHEEL_SHA256"))
    purl = f"pkg:pypi/certifi@{version}"
    return {
        "type": "data",
        "bom-ref": purl,
        "name": "certifi",
        "version": version,
        "purl": purl,
        "licenses": [{"expression": "MPL-2.0"}],
        "hashes": [{"alg": "SHA-256", "content": checksum}],
    }


def bom(program, module, target=None):
    """The list; `module` is the bytes of the program, where they are the same everywhere; `target` is that of a release."""
    default, package, name = PROGRAMS[program]
    released, target = target is not None, target or default
    graph, sums = metadata(target), checksums()
    packages = {one["id"]: one for one in graph["packages"]}
    start = next(one for one, found in packages.items() if found["name"] == package)
    needs = compiled(graph, start)
    root = component(packages[start], sums) | {"type": "application", "name": name}
    if module is not None:
        root["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(module).hexdigest()}]
    others = sorted((packages[one] for one in needs if one != start), key=purl)
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root},
        "components": [component(one, sums) for one in others],
        "dependencies": [
            {"ref": purl(packages[one]), "dependsOn": [purl(packages[other]) for other in needs[one]]}
            for one in sorted(needs, key=lambda one: purl(packages[one]))
        ],
    }
    if program == "control":
        found["components"].append(vendored())
    if released and program == "control":
        found["components"].append(authorities())
    base = base_image(program) if program in IMAGES and not released else None
    if base:
        found["components"].append(base)
        found["compositions"] = [{"aggregate": "incomplete", "assemblies": [base["bom-ref"]]}]
    return found


def main(words):
    match words:
        case ["filter", module, out]:
            found = bom("filter", Path(module).read_bytes())
        case ["native", target, module, out]:
            found = bom("native", Path(module).read_bytes(), target)
        case ["control", out]:
            found = bom("control", None)
        case ["release", target, program, out]:
            found = bom("control", Path(program).read_bytes(), target)
        case _:
            sys.exit("sbom.py: error: usage: ci/sbom.py filter MODULE OUT | native TARGET MODULE OUT | control OUT | release TARGET PROGRAM OUT")
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(found, indent=2) + "\n")
    print(f"sbom.py: {len(found['components'])} components in {out}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
