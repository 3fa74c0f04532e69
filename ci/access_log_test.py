#!/usr/bin/env python3
"""Tests of access_log.py."""

import unittest
from pathlib import Path

import access_log

YAML = 'access_log:\n- format:\n    time: "%START_TIME%"\n    status: "%RESPONSE_CODE%"\n'
JSON = 'format: |\n  {\n    "time": "%START_TIME%",\n    "status": "%RESPONSE_CODE%"\n  }\n'


class Fields(unittest.TestCase):
    def told(self, other):
        return list(access_log.differences({access_log.FIRST: YAML, "other.yaml": other}))

    def test_yaml_and_json_with_the_same_fields_agree(self):
        self.assertEqual(self.told(JSON), [])

    def test_a_missing_and_a_changed_field_are_told(self):
        for other in (JSON.replace('"status"', '"code"'), JSON.replace("RESPONSE_CODE", "REQ(X)"), JSON.replace(',\n    "status": "%RESPONSE_CODE%"', "")):
            self.assertEqual(len(self.told(other)), 1, other)

    def test_a_file_without_fields_is_told(self):
        self.assertEqual(list(access_log.differences({access_log.FIRST: ""})), [f"{access_log.FIRST}: no field was found"])

    def test_values_beside_an_object_are_left_out(self):
        self.assertEqual(list(access_log.objects("a: b\n---\nkind: Telemetry\n", "Telemetry")), ["kind: Telemetry\n"])


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).name])
