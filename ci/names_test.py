#!/usr/bin/env python3
"""Tests of names.py: which definitions count, and when a name has several."""

import tempfile
import unittest
from pathlib import Path

import circles
import names


class Names(unittest.TestCase):
    def repeated(self, a, b, b_name="b"):
        """The names that are defined in more than one of two files of a crate."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("lib", f"mod a;\nmod {b_name};"), ("a", a), (b_name, b)):
                Path(folder, f"{name}.rs").write_text(text)
            return list(names.repeated([circles.Crate(Path(folder, "lib.rs"))]))

    def test_a_type_of_any_kind_in_two_files_is_found(self):
        for text in ("struct A;", "pub(crate) enum A {\n B,\n}", "pub trait A {}", "type A = u8;", "mod m {\n pub struct A(u8);\n}"):
            self.assertEqual(self.repeated("pub struct A {\n a: u8,\n}", text), ["A"], text)

    def test_tests_fakes_inner_types_and_other_names_are_allowed(self):
        for text in ("#[cfg(test)]\nmod tests {\n struct A;\n}", "impl B for C {\n type A = u8;\n}", "fn f() {\n struct A;\n}", "// struct A;"):
            self.assertEqual(self.repeated("struct A;", text), [], text)
        self.assertEqual(self.repeated("struct A;", "struct A;", b_name="fake"), [])
        self.assertEqual(self.repeated("struct A;", "struct AB;"), [])

    def test_twins_in_one_file_are_allowed(self):
        self.assertEqual(self.repeated("#[cfg(unix)]\nstruct A;\n#[cfg(not(unix))]\nstruct A;", ""), [])


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).name])
