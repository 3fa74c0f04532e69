#!/usr/bin/env python3
"""States what a release was made from: ci/release/provenance.py VERSION COMMIT FOLDER OUT

An in-toto statement with a predicate of SLSA provenance, version 1, about each file of FOLDER and each image in FOLDER/digests.
It is not signed here, and holds no time, so that the same sources give the same bytes. The workflow of releases has its
own statement signed by the forge that runs it.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import env_file

ROOT = Path(__file__).resolve().parent.parent.parent


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel(versions, name, key, of=""):
    return {
        "uri": f"pkg:pypi/{name}@{versions[f'{key}_VERSION']}",
        "digest": {"sha256": versions[f"{key}_WHEEL_SHA256{of}"]},
    }


def dependencies(source, commit):
    versions = env_file.names(ROOT / "ci/versions.env")
    toolchain = re.search(r'^channel *= *"(.*)"', (ROOT / "rust-toolchain.toml").read_text(), re.MULTILINE)[1]
    code = {"uri": f"git+{source}"}
    if re.fullmatch("[0-9a-f]{40}", commit):
        code["digest"] = {"gitCommit": commit}
    return [
        code,
        {"uri": f"git+{source}#Cargo.lock", "digest": {"sha256": sha256(ROOT / "Cargo.lock")}},
        {"uri": "https://static.rust-lang.org/dist/channel-rust-" + toolchain + ".toml", "name": f"Rust {toolchain}"},
        wheel(versions, "ziglang", "ZIG", "_X86_64"),
        wheel(versions, "ziglang", "ZIG", "_AARCH64"),
        wheel(versions, "certifi", "CERTIFI"),
    ]


def main(words):
    if len(words) != 4:
        sys.exit("provenance.py: error: usage: ci/release/provenance.py VERSION COMMIT FOLDER OUT")
    version, commit, folder, out = words[0], words[1], Path(words[2]), Path(words[3])
    release = env_file.release()
    source = release["RELEASE_SOURCE_URL"]
    subjects = [{"name": one.name, "digest": {"sha256": sha256(one)}} for one in sorted(folder.iterdir()) if one != out]
    for line in (folder / "digests").read_text().splitlines():
        name, digest = line.split()
        subjects.append({"name": f"{release['RELEASE_REGISTRY']}/{name}", "digest": {"sha256": digest.removeprefix("sha256:")}})
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source}/blob/main/docs/releasing.md",
                "externalParameters": {"command": "make release", "version": version, "source": f"git+{source}"},
                "resolvedDependencies": dependencies(source, commit),
            },
            # A build on one's own machine is no proof for others.
            "runDetails": {"builder": {"id": f"{source}/blob/main/docs/releasing.md#unsigned"}},
        },
    }
    out.write_text(json.dumps(statement, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
