#!/usr/bin/env python3
"""Tests of docs.py: the tests that a page names, the table of contents, the labels and defaults in examples, and the words of prose and comments."""

import unittest
from pathlib import Path

import docs

PAGE = docs.ROOT / "SECURITY.md"


class NamedTests(unittest.TestCase):
    def named(self, text):
        return list(docs.tests(text))

    def test_names_after_a_file_are_its_tests(self):
        text = "x\n| a | `a/b.rs`: `one_two_three`, `four_five_six` and\n`seven_eight_nine` |"
        expected = [(2, "a/b.rs", "one_two_three"), (2, "a/b.rs", "four_five_six"), (3, "a/b.rs", "seven_eight_nine")]
        self.assertEqual(self.named(text), expected)

    def test_fields_and_prose_are_no_tests(self):
        for text in ("`a/b.rs` (`open`, `learn_recovery`)", "`a/b.rs`: `usual_rate`", "`one_two_three` in `a/b.rs`"):
            self.assertEqual(self.named(text), [], text)

    def test_a_function_or_a_line_of_a_macro_is_a_test(self):
        self.assertTrue(docs.has_test("async fn one_two_three() {", "one_two_three"))
        self.assertTrue(docs.has_test('    one_two_three: "one",', "one_two_three"))
        self.assertFalse(docs.has_test("fn one_two_three_four() {", "one_two_three"))
        self.assertFalse(docs.has_test("// one_two_three", "one_two_three"))

    def test_a_test_that_is_gone_is_told(self):
        good = "`testbed/tests/e2e/exempt.rs`: `no_user_agent_passes_by_default`"
        self.assertEqual(list(docs.absent(PAGE, good)), [])
        told = list(docs.absent(PAGE, good.replace("by_default", "at_all")))
        self.assertEqual(told, [(1, "`testbed/tests/e2e/exempt.rs` has no test `no_user_agent_passes_at_all`")])


class Contents(unittest.TestCase):
    def told(self, summary):
        return [message for _, message in docs.contents(summary, {"SUMMARY.md", "README.md", "a/b.md"})]

    def test_each_page_stands_there_once(self):
        self.assertEqual(self.told("[One](README.md)\n\n- [Two](a/b.md)\n"), [])

    def test_pages_outside_may_stand_there_too(self):
        self.assertEqual(self.told("[One](README.md)\n\n- [Two](a/b.md)\n- [Three](../c/README.md)\n"), [])

    def test_a_page_that_is_missing_is_told(self):
        self.assertEqual(self.told("[One](README.md)\n"), ["a/b.md is missing"])

    def test_a_page_that_is_gone_or_there_twice_is_told(self):
        told = self.told("[One](README.md)\n- [Two](a/b.md)\n- [Two](a/b.md)\n- [Three](c.md)\n")
        self.assertEqual(told, ["a/b.md stands here and in line 2", "docs/ has no page c.md"])


class Defaults(unittest.TestCase):
    FILTER = "  - name: tidegate\n    config_discovery:\n      type_urls: [a]\n"
    WITH = "      apply_default_config_without_warming: true\n      default_config:  # here\n        a: b\n"

    def told(self, text):
        return [(number, message.split("`")[1]) for number, message in docs.without_default(text)]

    def test_a_filter_with_a_default_from_the_start_is_right(self):
        self.assertEqual(self.told(self.FILTER + self.WITH + "  - name: router\n"), [])

    def test_each_missing_field_is_told(self):
        self.assertEqual(self.told("x\n" + self.FILTER), [(3, field) for field in docs.DEFAULT])

    def test_the_default_of_another_filter_does_not_count(self):
        self.assertEqual(len(self.told(self.FILTER + self.FILTER + self.WITH)), 2)


class Strategies(unittest.TestCase):
    def test_a_snippet_that_does_not_let_requests_pass_is_told(self):
        text = "x:\n  failure_policy: FAIL_RELOAD\n  failStrategy: FAIL_OPEN\n  failStrategy: FAIL_CLOSE  # here\n"
        self.assertEqual([number for number, _ in docs.strategies(text)], [2, 4])

    def test_prose_and_comments_may_name_the_later_step(self):
        text = "- `failure_policy: FAIL_RELOAD` is later\n# failStrategy: FAIL_RELOAD\nfailStrategy: FAIL_OPEN  # failStrategy: FAIL_RELOAD is later\n"
        self.assertEqual(list(docs.strategies(text)), [])


class Labels(unittest.TestCase):
    GENERATED = "# x\nstats_config:\n  stats_tags:\n  - tag_name: one\n    regex: a\n  - tag_name: two\n    regex: b\n"

    def test_the_generated_labels_are_right_anywhere_in_a_bootstrap(self):
        bootstrap = f"admin: {{}}\n\n{self.GENERATED}\nstatic_resources: {{}}\n"
        self.assertEqual(list(docs.labels(bootstrap, self.GENERATED)), [])

    def test_a_missing_or_other_label_is_told_with_its_line(self):
        bootstrap = "admin: {}\n\nstats_config:\n  stats_tags:\n  - tag_name: one\n    regex: a\n"
        self.assertEqual(list(docs.labels(bootstrap, self.GENERATED)), [(3, "stats_config is not the generated one: two")])
        for bootstrap in ("admin: {}\n", self.GENERATED.replace("regex: a", "regex: c")):
            self.assertEqual(len(list(docs.labels(bootstrap, self.GENERATED))), 1, bootstrap)


class Words(unittest.TestCase):
    def told(self, text):
        return [number for number, _ in docs.worded(docs.parts(text)[0])]

    def test_configurations_are_rejected_and_never_refused(self):
        for text in ("A bad configuration is refused.", "The filter refuses a policy.", "refusal of the document"):
            self.assertEqual(self.told(text), [1], text)
        for text in ("A bad configuration is rejected.", "A refused connection is a failure.", "Policies apply. A port refuses."):
            self.assertEqual(self.told(text), [], text)

    def test_private_phrases_and_british_spelling_are_told_with_their_line(self):
        lines = ("Plain.", "It keeps what was learned.", "Envoy goes on with what it has.", "Whoever asks", "its behaviour")
        self.assertEqual(self.told("\n".join(lines)), [2, 3, 4, 5])

    def test_inversions_and_riddles_are_told(self):
        for text in (
            "The table is written anew.",
            "No rival is ahead save where the file says so.",
            "The module is no part of a release.",
            "The request is no load any more.",
            "each worker more",
            "What becomes of the request",
            "what Prometheus makes of the histogram",
            "Both are held against the schema.",
            "The request is let in.",
            "An idle upstream is taken for dead.",
            "The figure stands below.",
            "This in place of that",
        ):
            self.assertEqual(self.told(text), [1], text)

    def test_plain_sentences_of_the_same_words_pass(self):
        for text in (
            "No queue stands, so the limit grows.",
            "Save the file. A server is no longer scraped.",
            "Each of more than ten workers",
            "A rule stands in for the learned policy.",
            "The place of the filter is before the router.",
            "It may take this for granted.",
        ):
            self.assertEqual(self.told(text), [], text)

    def test_comments_of_rust_are_prose_and_code_and_texts_are_not(self):
        lines = ("//! Written anew.", 'let url = "http://anew";', "f(x); // held against it", "/// `anew`", "    // anew", "let anew = 1;")
        told = [number for number, _ in docs.worded(docs.comments("\n".join(lines)))]
        self.assertEqual(told, [1, 3, 5])

    def test_code_is_not_prose(self):
        self.assertEqual(self.told("`what was learned`\n```text\nbehaviour\n```"), [])

    def test_history_is_left_as_it_was_written(self):
        pages = [page for page in docs.listed(docs.HISTORY[0]) if self.told(page.read_text())]
        self.assertTrue(pages, "a page of history has words that are forbidden now")
        told = [message for page in pages for _, message in docs.check(page, set(), set(), set())]
        self.assertEqual([message for message in told if "say it otherwise" in message], [])


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).name])
