#!/usr/bin/env python3
"""Tests of the scripts that publish a release, with fake programs on the PATH, and of how images are packed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "ci/release")]
import chart
import oci

REGISTRY = "ghcr.io/somebody/tidegate"
# What a home of the project writes into ci/release.env.
HOME = {
    "RELEASE_OWNER": "somebody",
    "RELEASE_REPOSITORY": "tidegate",
    "RELEASE_SOURCE_URL": "https://github.com/somebody/tidegate",
    "RELEASE_DOWNLOAD_URL": "https://github.com/somebody/tidegate/releases/download",
    "RELEASE_REGISTRY": REGISTRY,
    "RELEASE_SITE_URL": "https://somebody.github.io/tidegate",
}
# Writes down each call.
FAKE = """#!/usr/bin/env bash
echo "${0##*/} $*" >>"$CALLS"
"""
# cosign and gh read their input, as programs may that ask something.
FAKES = {
    "cosign": "cat >/dev/null",
    "gh": """cat >/dev/null
case "$1 $2" in
"release ${GH_FAILS-nothing}") exit 1 ;;
'release list') [ -z "${DRAFT-}" ] || echo "$DRAFT" ;;
esac
""",
    "crane": """case $1 in
auth) cat >/dev/null ;;
push) [[ $3 != *"${PUSH_FAILS-nothing}"* ]] || exit 1 ;;
digest)
    case $2 in
    --platform) echo "sha256:${3#linux/}" ;;
    *) awk -v name="${2#"$EXPECTED_REGISTRY"/}" '$1 == name {print $2}' dist/release/digests ;;
    esac
    ;;
esac
""",
}


class Clone:
    """A small clone with what the scripts read."""

    def __init__(self, folder):
        self.root = Path(folder)
        self.calls = self.root / "calls"
        for name in ("say.sh", "release/publishable.sh", "release/publish.sh", "release/push.sh", "release/predicate.py"):
            (self.root / "ci/release").mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "ci" / name, self.root / "ci" / name)
        self.write("ci/release.env", "".join(f"{name}={value}\n" for name, value in HOME.items()))
        self.write("Cargo.toml", '[workspace.package]\nversion = "1.2.3"\n')
        self.write("manifests/chart/tidegate/Chart.yaml", "version: 1.2.3\nappVersion: 1.2.3\n")
        self.write("CHANGELOG.md", "# Changelog\n\n## 1.2.3\n\nWhat is new.\n\n## 1.2.2\n\nOld.\n")
        self.write("README.md", "# Tidegate\n\nFrom a release:\n")

    def write(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def with_a_release(self):
        """The files that publishing takes, and the fakes."""
        self.write("ci/manifests-tools.sh", "#!/bin/sh\n", 0o755)
        for name, more in FAKES.items():
            self.write(f".tools/bin/{name}", FAKE + more, 0o755)
        names = ["filter:1.2.3", "filter:1.2.3-artifact", "control:1.2.3", "charts/tidegate:1.2.3"]
        self.write("dist/release/digests", "".join(f"{name} sha256:{number}\n" for number, name in enumerate(names)))
        for name in ("filter", "filter-artifact", "control", "chart"):
            archive = self.root / f"dist/release/tidegate-{name}-1.2.3.oci.tar"
            subprocess.run(["tar", "-cf", archive, "-C", self.root, "Cargo.toml"], check=True)
        self.write("dist/release/provenance.json", '{"predicate": {"buildDefinition": {"buildType": "x"}, "runDetails": {"builder": {"id": "unsigned"}}}}')
        self.write("dist/release/SHA256SUMS", "")

    def run(self, *words, **more):
        environment = {
            "PATH": f"{self.root}/.tools/bin:{os.environ['PATH']}",
            "HOME": str(self.root),
            "CALLS": str(self.calls),
            "EXPECTED_REGISTRY": REGISTRY,
            "GH_TOKEN": "token",
            "REGISTRY_USER": "somebody",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "somebody/tidegate",
            "GITHUB_WORKFLOW_REF": "somebody/tidegate/.github/workflows/release.yml@refs/tags/v1.2.3",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
        }
        return subprocess.run(
            [self.root / words[0], *words[1:]],
            env={**environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def called(self, start):
        """The calls that begin so, without their beginning."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line.removeprefix(start).strip() for line in lines if line.startswith(start)]


class InAClone(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clone = Clone(folder.name)


class Publishable(InAClone):
    def refused(self, reason, *tag):
        done = self.clone.run("ci/release/publishable.sh", *(tag or ["v1.2.3"]))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(reason, done.stderr)

    def test_a_version_with_a_home_and_a_section_may_be_published(self):
        done = self.clone.run("ci/release/publishable.sh", "v1.2.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("v1.2.3 may be published as https://github.com/somebody/tidegate", done.stderr)

    def test_it_takes_one_tag(self):
        self.refused("usage", "v1.2.3", "v1.2.4")

    def test_another_tag_is_refused(self):
        self.refused("expected v1.2.3", "v1.2.4")

    def test_each_placeholder_is_refused(self):
        for name in ("RELEASE_SOURCE_URL", "RELEASE_REGISTRY", "RELEASE_SITE_URL"):
            names = {**HOME, name: "https://example.com/tidegate"}
            self.clone.write("ci/release.env", "".join(f"{key}={value}\n" for key, value in names.items()))
            self.refused(f"{name} is https://example.com/tidegate")

    def test_a_chart_of_another_version_is_refused(self):
        for key, text in {
            "version": "version: 1.2.2\nappVersion: 1.2.3\n",
            "appVersion": "version: 1.2.3\nappVersion: 1.2.2\n",
        }.items():
            self.clone.write("manifests/chart/tidegate/Chart.yaml", text)
            self.refused(f"Chart.yaml has another {key} than 1.2.3")

    def test_a_changelog_without_the_version_is_refused(self):
        self.clone.write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## 1.2.2\n")
        self.refused("CHANGELOG.md has no section for 1.2.3")

    def test_a_readme_that_knows_of_no_release_is_refused(self):
        self.clone.write("README.md", "# Tidegate\n\nFrom a release. None is published yet, so build it:\n")
        self.refused("README.md still says that nothing is published")


class Publish(InAClone):
    def setUp(self):
        super().setUp()
        self.clone.with_a_release()

    def published(self, **more):
        done = self.clone.run("ci/release/publish.sh", **more)
        self.assertEqual(done.returncode, 0, done.stderr)

    def fails(self, **more):
        done = self.clone.run("ci/release/publish.sh", **more)
        self.assertNotEqual(done.returncode, 0, done.stderr)

    def test_what_may_not_be_published_reaches_nobody(self):
        self.clone.write("CHANGELOG.md", "# Changelog\n")
        self.fails()
        self.assertEqual(self.clone.called(""), [])

    def test_every_image_is_pushed_and_signed(self):
        self.published()
        images = [f"{REGISTRY}/filter@sha256:0", f"{REGISTRY}/filter@sha256:1", f"{REGISTRY}/control@sha256:2", f"{REGISTRY}/charts/tidegate@sha256:3"]
        self.assertEqual(self.clone.called("cosign sign --yes --recursive"), images)

    def test_a_failed_push_publishes_nothing(self):
        # The last one, so that others were pushed.
        self.fails(PUSH_FAILS="charts/tidegate")
        self.assertEqual(len(self.clone.called("crane push")), 4)
        self.assertEqual(self.clone.called("cosign") + self.clone.called("gh"), [])

    def test_every_image_has_a_provenance(self):
        self.published()
        of = [line.split()[-1] for line in self.clone.called("cosign attest --yes --type slsaprovenance1")]
        control = [f"{REGISTRY}/control@sha256:{one}" for one in ("2", "amd64", "arm64")]
        filters = [f"{REGISTRY}/filter@sha256:{one}" for one in ("0", "1")]
        self.assertEqual(sorted(of), sorted([*filters, *control, f"{REGISTRY}/charts/tidegate@sha256:3"]))

    def test_the_list_of_each_architecture_is_bound_to_its_image(self):
        self.published()
        lists = self.clone.called("cosign attest --yes --type cyclonedx --predicate dist/release/")
        expected = [
            f"tidegate-filter-1.2.3.cdx.json {REGISTRY}/filter@sha256:0",
            f"tidegate-filter-1.2.3.cdx.json {REGISTRY}/filter@sha256:1",
            f"tidegate-control-1.2.3-amd64.cdx.json {REGISTRY}/control@sha256:amd64",
            f"tidegate-control-1.2.3-arm64.cdx.json {REGISTRY}/control@sha256:arm64",
        ]
        self.assertEqual(lists, expected)

    def test_a_first_run_makes_the_release_and_shows_it_at_the_end(self):
        self.published()
        steps = [line.split()[0] for line in self.clone.called("gh release")]
        self.assertEqual(steps, ["list", "create", "upload", "edit"])
        self.assertEqual(self.clone.called("gh release edit"), ["v1.2.3 --draft=false"])

    def test_a_run_after_a_failed_upload_finishes_the_draft(self):
        self.fails(GH_FAILS="upload")
        self.assertEqual(self.clone.called("gh release edit"), [])
        self.clone.calls.unlink()
        self.published(DRAFT="true")
        steps = [line.split()[0] for line in self.clone.called("gh release")]
        self.assertEqual(steps, ["list", "upload", "edit"])

    def test_a_run_after_the_release_changes_no_file_of_it(self):
        self.published(DRAFT="false")
        self.assertEqual([line.split()[0] for line in self.clone.called("gh release")], ["list"])
        self.assertEqual(self.clone.called("cosign sign-blob"), [])

    def test_nothing_is_made_where_the_forge_does_not_answer(self):
        self.fails(GH_FAILS="list")
        self.assertEqual([line.split()[0] for line in self.clone.called("gh release")], ["list"])

    def test_the_workflow_is_the_builder(self):
        done = self.clone.run("ci/release/predicate.py", str(self.clone.root / "dist/release/provenance.json"))
        stated = json.loads(done.stdout)
        self.assertEqual(stated["buildDefinition"], {"buildType": "x"})
        self.assertEqual(
            stated["runDetails"],
            {
                "builder": {"id": "https://github.com/somebody/tidegate/.github/workflows/release.yml@refs/tags/v1.2.3"},
                "metadata": {"invocationId": "https://github.com/somebody/tidegate/actions/runs/7/attempts/1"},
            },
        )


class Packing(unittest.TestCase):
    """Images of programs that are no programs."""

    SOURCE = oci.source()[oci.SOURCE]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, data in {"module.wasm": b"\0asm", "amd64": b"x", "arm64": b"y", "authorities": b"z"}.items():
            (self.folder / name).write_bytes(data)

    def run_script(self, *words):
        done = subprocess.run([ROOT / "ci" / words[0], *map(str, words[1:])], check=True, capture_output=True, text=True)
        return done.stdout

    def blob(self, layout, digest):
        return json.loads((layout / "blobs/sha256" / digest.removeprefix("sha256:")).read_text())

    def top(self, layout):
        """The manifest or index that a layout is about."""
        return self.blob(layout, json.loads((layout / "index.json").read_text())["manifests"][0]["digest"])

    def module(self, out):
        return self.run_script("oci.py", self.folder / "module.wasm", "1.2.3", out)

    def control(self, out):
        programs = [f"{arch}={self.folder / arch}" for arch in ("amd64", "arm64")]
        return self.run_script("release/image.py", "1.2.3", "commit", self.folder / "authorities", out, *programs)

    def chart(self, out):
        version = chart.metadata((ROOT / "manifests/chart/tidegate/Chart.yaml").read_text())["version"]
        words = [ROOT / "manifests/chart/tidegate", version, REGISTRY, "sha256:1", "sha256:2", self.folder / "chart.tgz", out]
        return self.run_script("release/chart.py", *words)

    def test_the_module_says_where_its_sources_are(self):
        self.module(self.folder / "out")
        for layout in ("compat", "artifact"):
            self.assertEqual(self.top(self.folder / "out" / layout)["annotations"][oci.SOURCE], self.SOURCE)

    def test_the_control_service_says_it_on_the_index_and_on_each_image(self):
        out = self.folder / "out"
        self.control(out)
        index = self.top(out)
        self.assertEqual(index["annotations"][oci.SOURCE], self.SOURCE)
        self.assertEqual(len(index["manifests"]), 2)
        for one in index["manifests"]:
            manifest = self.blob(out, one["digest"])
            self.assertEqual(manifest["annotations"][oci.SOURCE], self.SOURCE)
            # The configuration is what `docker inspect` shows.
            self.assertEqual(self.blob(out, manifest["config"]["digest"])["config"]["Labels"][oci.SOURCE], self.SOURCE)

    def test_the_chart_says_it(self):
        self.chart(self.folder / "out")
        self.assertEqual(self.top(self.folder / "out")["annotations"][oci.SOURCE], self.SOURCE)

    def test_packing_twice_gives_the_same_digests(self):
        for pack in (self.module, self.control, self.chart):
            self.assertEqual(pack(self.folder / "one"), pack(self.folder / "other"))


if __name__ == "__main__":
    unittest.main()
