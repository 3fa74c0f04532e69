#!/usr/bin/env python3
"""Tests of dependencies.py: who uses a dependency, and when the page is wrong."""

import unittest
from pathlib import Path

import dependencies


class Dependencies(unittest.TestCase):
    def test_users_are_crates_and_those_whose_tests_alone_use_it_are_in_brackets(self):
        manifests = {
            "b": {"dependencies": {"x": "1", "tidegate-core": "1"}, "dev-dependencies": {"x": "1", "y": {"version": "1"}}},
            "a": {"target": {"unix": {"dependencies": {"z": {"package": "real"}}}}, "dev-dependencies": {"x": "1"}},
        }
        self.assertEqual(dependencies.users(manifests), {"x": "(a), b", "y": "(b)", "real": "a"})

    def test_a_missing_stale_doubled_or_wrong_row_is_found(self):
        row = "| `x` | a | For a reason. |\n"
        for text, count in ((row, 0), ("", 1), (row + "| `y` | a | Gone. |\n", 1), (row + row, 1), (row.replace("| a |", "| b |"), 1)):
            self.assertEqual(len(list(dependencies.complaints({"x": "a"}, text))), count, text)


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).name])
