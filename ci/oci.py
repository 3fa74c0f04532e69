#!/usr/bin/env python3
"""Packs the module as OCI images, with bytes that depend on the module alone: ci/oci.py MODULE VERSION OUT

Two layouts are in use for Wasm modules, and Istio takes both:

- `compat`: an image of one layer, a tar with `plugin.wasm`. Every registry and tool takes it.
- `artifact`: a layer with the runtime's configuration and one with the module as it is.

OUT/compat and OUT/artifact are OCI image layouts (a folder that `crane push` and others read). Printed is a
line for each: its name, its digest. Nothing in it tells of a time or a machine, and the layer is stored
without compression: compressors differ between versions, and a digest that can be had again from the sources
is worth more than 200 KiB at a pull that each proxy makes once.
"""

import hashlib
import io
import json
import shutil
import sys
import tarfile
import zlib
from pathlib import Path

import env_file

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
WASM_CONFIG = "application/vnd.module.wasm.config.v1+json"
WASM_CONTENT = "application/vnd.module.wasm.content.layer.v1+wasm"
ABI = "0.2.1"
# Where the sources are, in an annotation that registries link an image to its repository by.
SOURCE = "org.opencontainers.image.source"
# The largest block that the format stores.
BLOCK = 65535


def text(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def stored(data):
    """gzip without compression, written here, because libraries cut the blocks as they like."""
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    blocks = []
    for start in range(0, len(data), BLOCK):
        block = data[start : start + BLOCK]
        size = len(block).to_bytes(2, "little")
        is_last = start + BLOCK >= len(data)
        blocks.append(bytes([is_last]) + size + bytes(byte ^ 0xFF for byte in size) + block)
    tail = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return head + b"".join(blocks) + tail


def source():
    """The annotation that says where the sources are."""
    return {SOURCE: env_file.release()["RELEASE_SOURCE_URL"]}


def archive(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = len(data), 0o644, 0
        tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


class Layout:
    """An OCI image layout that is being written."""

    def __init__(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)

    def blob(self, kind, data, **more):
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data), **more}

    def manifest(self, config, layers, annotations, **more):
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        manifest["annotations"] = annotations
        return self.blob(MANIFEST, text(manifest), **more)

    def finish(self, config, layers, annotations):
        return self.seal(self.manifest(config, layers, annotations))

    def seal(self, entry):
        """Makes `entry`, a manifest or an index, what the layout is about."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
        (self.folder / "index.json").write_bytes(text(index))
        (self.folder / "oci-layout").write_bytes(text({"imageLayoutVersion": "1.0.0"}))
        return entry["digest"]


def compat(folder, module, annotations):
    layout = Layout(folder)
    tar = archive("plugin.wasm", module)
    layer = layout.blob(LAYER, stored(tar))
    diff = f"sha256:{hashlib.sha256(tar).hexdigest()}"
    config = {"architecture": "wasm", "os": "wasi", "config": {}, "rootfs": {"type": "layers", "diff_ids": [diff]}}
    return layout.finish(
        layout.blob(CONFIG, text(config)), [layer], {**annotations, "module.wasm.image/variant": "compat"}
    )


def artifact(folder, module, annotations):
    layout = Layout(folder)
    runtime = text({"type": "envoy_proxy", "abiVersions": [ABI], "config": {"rootIds": ["tidegate"]}})

    def title(name):
        return {"annotations": {"org.opencontainers.image.title": name}}

    layers = [
        layout.blob(WASM_CONFIG, runtime, **title("runtime-config.json")),
        layout.blob(WASM_CONTENT, module, **title("plugin.wasm")),
    ]
    return layout.finish(layout.blob(WASM_CONFIG, runtime), layers, annotations)


def main():
    if len(sys.argv) != 4:
        sys.exit("oci.py: error: usage: ci/oci.py MODULE VERSION OUT")
    path, version, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    module = path.read_bytes()
    if not module.startswith(b"\0asm"):
        sys.exit(f"oci.py: error: {path}: found {module[:4]!r} at its start, expected a WebAssembly module")
    annotations = {
        "org.opencontainers.image.title": "tidegate",
        "org.opencontainers.image.description": "Adaptive circuit breaker and load shedder for Envoy",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        **source(),
    }
    for name, build in (("compat", compat), ("artifact", artifact)):
        print(name, build(out / name, module, annotations))


if __name__ == "__main__":
    main()
