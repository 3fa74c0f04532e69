#!/usr/bin/env python3
"""Packs the control service as an OCI image: ci/release/image.py VERSION COMMIT AUTHORITIES OUT ARCHITECTURE=PROGRAM...

OUT becomes an OCI image layout of one index with an image for each architecture. An image holds the static program and the
certificates of public authorities (the file AUTHORITIES), and nothing else: no shell, no library. It runs as user 65532. As in
ci/oci.py nothing tells of a time or a machine, and layers are stored without compression. Printed is the digest of the index.
"""

import hashlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import oci
from archive import FILE, PROGRAM, tar

# As in docker/control.Dockerfile and in the chart.
USER = "65532:65532"
PORTS = {"18000/tcp": {}, "18080/tcp": {}, "18081/tcp": {}}
AUTHORITIES = "etc/ssl/certs/ca-certificates.crt"


def image(layout, architecture, contents, annotations):
    """One image of a layout: an entry of the index."""
    layers, diffs = [], []
    for entries in contents:
        data = tar(entries, with_folders=True)
        layers.append(layout.blob(oci.LAYER, oci.stored(data)))
        diffs.append(f"sha256:{hashlib.sha256(data).hexdigest()}")
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "ExposedPorts": PORTS,
            "Env": ["PATH=/usr/bin", f"SSL_CERT_FILE=/{AUTHORITIES}"],
            "Entrypoint": ["/usr/bin/tidegate"],
            "Cmd": ["--help"],
            "Labels": annotations,
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": diffs},
    }
    platform = {"architecture": architecture, "os": "linux"}
    return layout.manifest(layout.blob(oci.CONFIG, oci.text(config)), layers, annotations, platform=platform)


def main(words):
    if len(words) < 5 or not all("=" in word for word in words[4:]):
        sys.exit("image.py: error: usage: ci/release/image.py VERSION COMMIT AUTHORITIES OUT ARCHITECTURE=PROGRAM...")
    version, commit, authorities, out = words[:4]
    annotations = {
        "org.opencontainers.image.title": "tidegate",
        "org.opencontainers.image.description": "Control service of Tidegate, an adaptive circuit breaker and load shedder for Envoy",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": commit,
        **oci.source(),
    }
    layout = oci.Layout(Path(out))
    trusted = {AUTHORITIES: (Path(authorities).read_bytes(), FILE)}
    entries = []
    for word in words[4:]:
        architecture, _, path = word.partition("=")
        program = {"usr/bin/tidegate": (Path(path).read_bytes(), PROGRAM)}
        entries.append(image(layout, architecture, [trusted, program], annotations))
    index = {"schemaVersion": 2, "mediaType": oci.INDEX, "manifests": entries, "annotations": annotations}
    print(layout.seal(layout.blob(oci.INDEX, oci.text(index))))


if __name__ == "__main__":
    main(sys.argv[1:])
