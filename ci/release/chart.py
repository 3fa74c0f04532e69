#!/usr/bin/env python3
"""Packs the chart: ci/release/chart.py CHART VERSION REGISTRY CONTROL FILTER ARCHIVE LAYOUT

CONTROL and FILTER are the digests of both images of the release. The packed chart names them, so that it installs what was
released together without a word of the operator; all else in it is as in the sources. ARCHIVE is what `helm install` takes as a
file, LAYOUT an OCI image layout with the same bytes, as `helm install oci://...` takes it. Printed is the layout's digest.
"""

import fnmatch
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import oci
from archive import FILE, tar

CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def fail(message):
    sys.exit(f"chart.py: error: {message}")


def is_ignored(path, patterns):
    return any(
        fnmatch.fnmatch(part, pattern.rstrip("/")) for part in path.parts for pattern in patterns
    )


def replaced(text, old, new):
    found = text.count(old)
    if found != 1:
        fail(f"values.yaml: found {found} times {old!r}, expected one")
    return text.replace(old, new)


def values(text, version, registry, control, module):
    """The values with the images of this release."""
    text = replaced(text, "\n  repository: registry.example.com/tidegate/control\n", f"\n  repository: {registry}/control\n")
    text = replaced(text, '\n  digest: ""\n', f'\n  digest: "{control}"\n')
    text = replaced(text, '\n  url: ""\n', f'\n  url: "oci://{registry}/filter:{version}"\n')
    return replaced(text, '\n  sha256: ""\n', f'\n  sha256: "{module.removeprefix("sha256:")}"\n')


def metadata(text):
    """What Chart.yaml says at its top level, without its annotations: the description that a registry shows."""
    found = {}
    for key, value in re.findall(r"^(\w+): (.+)$", text, re.MULTILINE):
        value = value.strip('"')
        found[key] = value[1:-1].split(", ") if value.startswith("[") else value
    return found


def main(words):
    if len(words) != 7:
        fail("usage: ci/release/chart.py CHART VERSION REGISTRY CONTROL FILTER ARCHIVE LAYOUT")
    chart, version, registry, control, module, out, folder = words
    chart = Path(chart)
    description = metadata((chart / "Chart.yaml").read_text())
    for key in ("version", "appVersion"):
        if description[key] != version:
            fail(f"Chart.yaml: found {key} {description[key]}, expected {version} (Cargo.toml)")
    patterns = [line for line in (chart / ".helmignore").read_text().split() if line]
    entries = {}
    for path in sorted(chart.rglob("*")):
        name = path.relative_to(chart)
        if path.is_file() and not is_ignored(name, patterns):
            entries[f"tidegate/{name.as_posix()}"] = (path.read_bytes(), FILE)
    text = entries["tidegate/values.yaml"][0].decode()
    entries["tidegate/values.yaml"] = (values(text, version, registry, control, module).encode(), FILE)
    data = oci.stored(tar(entries))
    Path(out).write_bytes(data)

    layout = oci.Layout(Path(folder))
    config = layout.blob(CONFIG, json.dumps(description, sort_keys=True).encode())
    annotations = {
        "org.opencontainers.image.title": "tidegate",
        "org.opencontainers.image.description": description["description"],
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        **oci.source(),
    }
    print(layout.finish(config, [layout.blob(CONTENT, data)], annotations))


if __name__ == "__main__":
    main(sys.argv[1:])
