#!/usr/bin/env python3
"""Tests of chart_reference.py."""

import unittest
from pathlib import Path

import chart_reference as reference

VALUES = """# A comment: of the file
one: 1
two:
  # What it is.
  three: ""
  four: {a: b}
labels:
  x/y: "false"
  z: none
list:
- name: a
  key: b
last: true
"""
SCHEMA = {
    "properties": {
        "one": {"type": "integer", "minimum": 1, "description": "One."},
        "two": {"type": "object", "description": "Two.", "properties": {"three": {"enum": ["", "x"]}, "four": {"type": "object", "description": "Four."}}},
        "last": {"type": "boolean", "description": "Last."},
    }
}


class Defaults(unittest.TestCase):
    def test_values_have_their_path_and_their_text(self):
        expected = {"one": "1", "two.three": '""', "two.four": "{a: b}", "labels.x/y": '"false"', "labels.z": "none", "list": "a list", "last": "true"}
        self.assertEqual(reference.defaults(VALUES), expected)

    def test_what_is_below_a_value_of_free_form_is_its_default(self):
        found = reference.gathered(reference.defaults(VALUES), ["labels"])
        self.assertEqual(found["labels"], '{x/y: "false", z: none}')


class Errors(unittest.TestCase):
    def test_a_value_without_description_and_a_default_without_schema_are_told(self):
        values = {"one": "1", "two.three": '""', "five": "5"}
        told = list(reference.wrong(list(reference.rows(SCHEMA, values)), values))
        self.assertEqual(told, ["two.three has no description in values.schema.json", "five of values.yaml is not in values.schema.json"])


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).name])
