#!/usr/bin/env python3
"""Tests of site.py: what becomes of links and diagrams, and which links of a built site are told."""

import os
import tempfile
import unittest
from pathlib import Path

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


class Check(unittest.TestCase):
    def told(self, body):
        with tempfile.TemporaryDirectory() as folder:
            site_folder = Path(folder).resolve()
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

    def test_a_site_without_pages_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(list(site.wrong(Path(folder)))), 1)


if __name__ == "__main__":
    unittest.main()
