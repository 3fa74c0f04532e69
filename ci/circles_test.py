#!/usr/bin/env python3
"""Tests of circles.py: what is an import, which file a name counts for, and what is a circle."""

import tempfile
import unittest
from pathlib import Path

import circles


class Imports(unittest.TestCase):
    def imports(self, **files):
        """Who imports what from whom in a crate of these files; `a__b` is `a/b.rs`."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                file = Path(folder, name.replace("__", "/") + ".rs")
                file.parent.mkdir(exist_ok=True)
                file.write_text(text)
            found = circles.Crate(Path(folder, "lib.rs")).imports()
        return {(file.stem, other.stem): sorted(names) for file in found for other, names in found[file].items()}

    def of_a(self, a, **files):
        return self.imports(lib="mod a;\nmod b;", a=a, b="pub struct B;\npub const C: u8 = 1;\npub fn d() {}", **files)

    def test_use_and_inline_paths_are_imports(self):
        for text, names in (
            ("use crate::b::B;", ["B"]),
            ("use super::b::{self, B as Other, C};", ["B", "C"]),
            ("use super::b;\nfn f() { b::d() }", ["d"]),
            ("fn f() -> crate::b::B { super::b::B }", ["B"]),
            ("mod inner {\n use super::super::b::C;\n}", ["C"]),
        ):
            self.assertEqual(self.of_a(text), {("a", "b"): names}, text)

    def test_tests_comments_strings_and_other_crates_are_no_imports(self):
        for text in (
            "#[cfg(test)]\nmod tests {\n use crate::b::B;\n}",
            "#[cfg(test)]\n#[expect(dead_code)]\nfn f() -> crate::b::B { crate::b::B }",
            "struct A {\n #[cfg(test)]\n b: crate::b::B,\n}",
            "// use crate::b::B;\n/* use crate::b::B; */",
            'const A: &str = "use crate::b::B;";\nconst D: &str = r#"crate::b::B "quoted""#;',
            "use other::b::B;\nuse std::fmt;",
        ):
            self.assertEqual(self.of_a(text), {}, text)

    def test_code_after_a_test_a_lifetime_or_a_quote_is_read(self):
        for text in ("#[cfg(test)]\nmod tests;\n", "fn f<'a>(a: &'a str) {}\n", "const A: char = '\"';\n", 'const A: &str = "\\"";\n'):
            self.assertEqual(self.of_a(text + "use crate::b::B;"), {("a", "b"): ["B"]}, text)

    def test_a_name_counts_for_the_file_that_defines_it(self):
        for reexport in ("pub use inner::B;", "pub use inner::*;", "pub use inner::Old as B;"):
            files = {"m__mod": f"mod inner;\n{reexport}", "m__inner": "pub struct B;\npub struct Old;", "a": "use crate::m::B;"}
            found = self.imports(lib="mod a;\nmod m;", **files)
            self.assertEqual(list(found), [("a", "inner")], reexport)

    def test_a_reexport_is_an_import_only_if_its_file_uses_the_name(self):
        self.assertEqual(self.of_a("pub use crate::b::{B, d};"), {})
        self.assertEqual(self.of_a("pub use crate::b::{B, d};\nstruct A(B);"), {("a", "b"): ["B"]})
        self.assertEqual(self.of_a("pub use crate::b::{B, d};\nfn f() { d() }"), {("a", "b"): ["d"]})

    def test_a_part_may_use_the_module_around_it(self):
        files = {"m__mod": "mod inner;\nuse inner::B;\npub struct A;", "m__inner": "use super::A;\npub struct B;"}
        self.assertEqual(self.imports(lib="mod m;", **files), {("mod", "inner"): ["B"]})


class Circles(unittest.TestCase):
    def test_files_that_lead_to_each_other_are_a_circle(self):
        imports = {"a": {"b": "x"}, "b": {"c": "x"}, "c": {"a": "x", "d": "x"}, "d": {"e": "x"}}
        self.assertEqual(circles.circles(imports), [["a", "b", "c"]])

    def test_a_line_of_imports_is_no_circle(self):
        self.assertEqual(circles.circles({"a": {"b": "x", "c": "x"}, "b": {"c": "x"}}), [])

    def test_every_crate_of_the_workspace_has_a_root(self):
        for member in circles.members():
            self.assertTrue(circles.roots(circles.ROOT / member), member)


if __name__ == "__main__":
    unittest.main(argv=[Path(__file__).name])
