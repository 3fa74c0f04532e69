#!/usr/bin/env python3
"""Tests of site.py: what becomes of links and diagrams, and which links of a built site are told."""

import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

os.environ["TIDEGATE_REPOSITORY_URL"] = "https://example.com/owner/repo"
import site_pages as site


class Links(unittest.TestCase):
    def moved(self, link, page="laws/limit.md"):
        return site.moved(link, page)

    def test_links_within_the_docs_stay(self):
        for link in ("window.md", "../bench.md#cost", "#edges", "https://example.org/x", "../settings.yaml"):
            self.assertEqual(self.moved(link), link)

    def test_links_to_readmes_and_folders_lead_to_their_index(self):
        self.assertEqual(self.moved("README.md"), "index.md")
        self.assertEqual(self.moved("../README.md#how-to"), "../index.md#how-to")
        self.assertEqual(self.moved("../decisions/"), "../decisions/index.md")

    def test_pages_outside_that_the_contents_name_are_pages_of_the_site(self):
        root = "https://example.com/owner/repo"
        self.assertEqual(self.moved("../../manifests/README.md#monitoring"), "../manifests/index.md#monitoring")
        self.assertEqual(self.moved("../../examples/"), "../examples/index.md")
        page = "../manifests/README.md"
        self.assertEqual(self.moved("policies/README.md", page), "policies/index.md")
        self.assertEqual(self.moved("../docs/install/README.md#x", page), "../install/index.md#x")
        self.assertEqual(self.moved("../docs/kubernetes.md", page), "../kubernetes.md")
        self.assertEqual(self.moved("../SECURITY.md#x", "bench.md"), "SECURITY.md#x")
        self.assertEqual(self.moved("core/README.md", "../ARCHITECTURE.md"), f"{root}/blob/main/core/README.md")
        self.assertEqual(self.moved("chart/tidegate/values.yaml", page), f"{root}/blob/main/manifests/chart/tidegate/values.yaml")

    def test_links_out_of_the_docs_lead_to_the_repository(self):
        root = "https://example.com/owner/repo"
        self.assertEqual(self.moved("../../CONTRIBUTING.md#x"), f"{root}/blob/main/CONTRIBUTING.md#x")
        self.assertEqual(self.moved("../../sim/scenarios/"), f"{root}/tree/main/sim/scenarios")
        self.assertEqual(self.moved("../README.md", "bench.md"), f"{root}/blob/main/README.md")


class Text(unittest.TestCase):
    def test_links_are_moved_and_code_is_not(self):
        text = "[a `b`](../README.md) and ![c](images/x.svg)\n```sh\n[d](../README.md)\n```\n"
        expected = (
            "[a `b`](https://example.com/owner/repo/blob/main/README.md) and ![c](images/x.svg)\n```sh\n[d](../README.md)\n```\n"
        )
        self.assertEqual(site.rewritten(text, "bench.md"), expected)

    def test_diagrams_become_what_the_script_draws(self):
        text = "```mermaid\nflowchart LR\n    a --> b[1 < 2]\n```\n"
        self.assertEqual(site.rewritten(text, "bench.md"), '<pre class="mermaid">\nflowchart LR\n    a --> b[1 &lt; 2]\n</pre>\n')

    def test_code_in_a_language_that_cannot_be_colored_is_text(self):
        self.assertEqual(site.rewritten("```promql\nsum(promql)\n```\n```sh\n```\n", "bench.md"), "```text\nsum(promql)\n```\n```sh\n```\n")


class Names(unittest.TestCase):
    HOME = {
        "RELEASE_OWNER": "somebody",
        "RELEASE_REPOSITORY": "gate",
        "RELEASE_SOURCE_URL": "https://github.com/somebody/gate",
        "RELEASE_REGISTRY": "ghcr.io/somebody/gate",
        "RELEASE_SITE_URL": "https://somebody.github.io/gate",
    }
    PAGE = "url: oci://registry.example.com/tidegate/filter:0.1.0\nhttps://github\\.com/example/tidegate/x --repo example/tidegate\n"

    def test_names_of_a_home_stand_for_placeholders(self):
        expected = "url: oci://ghcr.io/somebody/gate/filter:0.1.0\nhttps://github\\.com/somebody/gate/x --repo somebody/gate\n"
        self.assertEqual(site.named(self.PAGE, self.HOME), expected)

    def test_without_a_home_they_stay(self):
        for name in ("RELEASE_SOURCE_URL", "RELEASE_REGISTRY", "RELEASE_SITE_URL"):
            self.assertEqual(site.named(self.PAGE, {**self.HOME, name: "https://example.com"}), self.PAGE)

    def test_the_registry_that_the_reader_pushes_to_stays(self):
        one = "# One\n```sh\n# push\nmake oci-push REPOSITORY=registry.example.com/tidegate/filter\n# use\nurl=registry.example.com/tidegate/filter\n```\n"
        two = "# Two\nurl: registry.example.com/tidegate/filter\n"
        self.assertEqual(site.named(one + two, self.HOME), one + two.replace("registry.example.com/tidegate", "ghcr.io/somebody/gate"))

    def test_what_holds_before_a_release_goes_with_one(self):
        text = "A release<!-- before the first release -->. None is\nthere yet<!-- end -->:\n<!-- end -->\n"
        self.assertEqual(site.named(text, self.HOME), "A release:\n<!-- end -->\n")
        names = {**self.HOME, "RELEASE_SOURCE_URL": "https://github.com/example/tidegate"}
        self.assertEqual(site.named(text, names), "A release. None is\nthere yet:\n<!-- end -->\n")

    def pages(self):
        """Every page of the site, by its path in the repository."""
        found = [*site.DOCS.rglob("*.md"), *(site.ROOT / name for name in site.outside())]
        self.assertGreater(len(found), 100)
        return {str(path.relative_to(site.ROOT)): path.read_text() for path in found}

    def test_every_page_spells_the_registry_alike(self):
        for name, text in self.pages().items():
            others = re.findall(r"registry\.example(?!\.com/tidegate\b)\S*", text)
            self.assertEqual(others, [], name)

    def test_no_page_of_a_published_site_says_that_nothing_is_published(self):
        told = [name for name, text in self.pages().items() if re.search(r"published\s+yet", text)]
        self.assertIn("docs/tutorial.md", told)
        for name in told:
            self.assertNotRegex(site.named(self.pages()[name], self.HOME), r"published\s+yet", name)


class Check(unittest.TestCase):
    def told(self, body, **pages):
        with tempfile.TemporaryDirectory() as folder:
            site_folder = Path(folder).resolve()
            for name, text in pages.items():
                (site_folder / f"{name}.html").write_text(text)
            (site_folder / "index.html").write_text(f'<h1 id="top"></h1>{body}')
            (site_folder / "other.html").write_text('<h1 id="there"></h1>')
            return list(site.wrong(site_folder))

    def test_links_that_hold_are_not_told(self):
        good = ("#top", "other.html", "other.html#there", "https://example.org/", "https://example.com/owner/repo/blob/main/README.md")
        for link in good:
            self.assertEqual(self.told(f'<a href="{link}">x</a>'), [], link)

    def test_links_that_do_not_hold_are_told(self):
        bad = ("#gone", "gone.html", "other.html#gone", "gone.png", "https://example.com/owner/repo/blob/main/gone.md")
        for link in bad:
            self.assertEqual(len(self.told(f'<a href="{link}">x</a>')), 1, link)

    def test_the_page_for_unknown_addresses_begins_its_links_at_the_path_of_the_site(self):
        for address, right in {"https://somebody.github.io/gate": "/gate/", "https://gate.example.org": "/"}.items():
            with mock.patch.object(site.env_file, "release", return_value={"RELEASE_SITE_URL": address}):
                self.assertEqual(self.told("", **{"404": f'<base href="{right}"><a href="other.html">x</a>'}), [])
                for wrong in ('<base href="/elsewhere/">', ""):
                    self.assertEqual(len(self.told("", **{"404": wrong})), 1, wrong)

    def test_a_site_without_pages_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(list(site.wrong(Path(folder)))), 1)


if __name__ == "__main__":
    unittest.main()
