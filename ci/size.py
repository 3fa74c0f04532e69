#!/usr/bin/env python3
"""Prints the size of a WebAssembly module, of its sections, and of its largest functions.

usage: size.py MODULE.wasm NAMED.wasm   (the same module, packed with the names of its functions)
"""

import gzip
import re
import sys
from pathlib import Path

LARGEST = 25
WIDTH = 110
SECTIONS = ("custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element",
            "code", "data", "data count")
CUSTOM, IMPORT, CODE = 0, 2, 10
FUNCTION_NAMES = 1


class Reader:
    """Reads the binary format; see the WebAssembly core specification, chapter 5."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return self.at < len(self.data)

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        return self.take(self.number()).decode()


def sections(data):
    reader = Reader(data)
    reader.take(8)
    while reader.left():
        kind = reader.byte()
        yield kind, reader.take(reader.number())


def imported_functions(body):
    """How many functions are imported: they come first in the numbering."""
    reader, count = Reader(body), 0
    for _ in range(reader.number()):
        reader.text(), reader.text()
        kind = reader.byte()
        if kind == 0:
            reader.number()
            count += 1
        else:
            raise SystemExit("size.py: error: only functions are expected as imports")
    return count


def function_names(body):
    reader, names = Reader(body), {}
    while reader.left():
        kind, part = reader.byte(), Reader(reader.take(reader.number()))
        if kind == FUNCTION_NAMES:
            names = {part.number(): part.text() for _ in range(part.number())}
    return names


def largest_functions(data):
    imported, names, sizes = 0, {}, []
    for kind, body in sections(data):
        if kind == IMPORT:
            imported = imported_functions(body)
        elif kind == CODE:
            reader = Reader(body)
            for _ in range(reader.number()):
                sizes.append(reader.number())
                reader.take(sizes[-1])
        elif kind == CUSTOM and body[1:5] == b"name":
            names = function_names(body[5:])
    named = ((size, names.get(imported + index, "?")) for index, size in enumerate(sizes))
    return sorted(named, reverse=True)[:LARGEST]


def readable(name):
    """The path inside a mangled name of the older kind, without its hash; others as they are."""
    words, rest = [], name.removeprefix("_ZN")
    while rest != name and (length := re.match(r"\d+", rest)):
        end = length.end() + int(length[0])
        words.append(rest[length.end():end])
        rest = rest[end:]
    path = "::".join(words[:-1]) or name
    for code, sign in (("$LT$", "<"), ("$GT$", ">"), ("$C$", ","), ("$u20$", " "), ("$RF$", "&"), ("..", "::")):
        path = path.replace(code, sign)
    return path[:WIDTH]


def main():
    module, named = (Path(path).read_bytes() for path in sys.argv[1:3])
    print(f"{len(module):8}  {sys.argv[1]} ({len(gzip.compress(module, mtime=0))} compressed)\n")
    for kind, body in sections(module):
        print(f"{len(body):8}  {SECTIONS[kind]}")
    print("\nlargest functions")
    for size, name in largest_functions(named):
        print(f"{size:8}  {readable(name)}")


if len(sys.argv) != 3:
    sys.exit(__doc__)
main()
