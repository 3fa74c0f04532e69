#!/usr/bin/env python3
"""Tests ci/features.py."""

import unittest

import features


class Complaints(unittest.TestCase):
    def said(self, programs, tests):
        return list(features.complaints(features.packages(programs), features.packages(tests)))

    def test_the_same_features_are_no_complaint(self):
        self.assertEqual(self.said("log v1\tstd\n", "log v1\tstd\nproptest v1\t\n"), [])

    def test_what_only_tests_enable_is_named(self):
        self.assertEqual(self.said("tokio v1\trt\n", "tokio v1\trt,test-util\n"), ["tokio v1: tests enable test-util, and programs do not: name it here"])

    def test_a_package_of_build_scripts_and_programs_has_two_sets(self):
        self.assertEqual(self.said("syn v1\tfull\nsyn v1\tfull,visit\n", "syn v1\tfull,visit\nsyn v1\tfull (*)\n"), [])


if __name__ == "__main__":
    unittest.main()
