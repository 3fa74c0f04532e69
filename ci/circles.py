#!/usr/bin/env python3
"""Finds circles of imports between the files of each crate of the workspace.

Files that import each other can only be read, tested and moved together. The script reads production code, not tests: `use`,
and paths such as `super::name` or `module::Name`. A name counts for the file that defines it, however many re-exports lead
there. A re-export is an import only if its file uses the name as well. A module may use the files below it and they may use
it: they are parts of it. Not seen: methods whose type is not named, and macros by their bare name.

ci/circles.py [CRATE...]: all crates if none is named, each by its folder.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Comments, and literals that could look like code. The quote of a lifetime starts no character.
NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\b[bc]?r(#*)".*?"\1|(?:\b[bc])?"(?:\\.|[^"\\])*"|'(?:\\(?:u\{\w+\}|x\w\w|.)|[^\\'\n])'""", re.DOTALL
)
FOR_TESTS = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
ATTRIBUTE = re.compile(r"\s*#\[[^\]]*\]")
FIELD = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?\w+\s*:(?!:)")
MODULE = re.compile(r"(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?\bmod\s+(\w+)\s*([;{])")
USE = re.compile(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:.])(?:\w+::)+\w+")
DEFINITION = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(\w+)")
PATH_OF_MODULE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]')


def blank(match):
    """As many blanks as there was text, so that places in the file stay the same."""
    return re.sub(r"[^\n]", " ", match[0])


def end_of_item(code, start):
    """Where the item or field ends that starts here."""
    while attribute := ATTRIBUTE.match(code, start):
        start = attribute.end()
    is_field, depth = FIELD.match(code, start), 0
    for place in range(start, len(code)):
        sign = code[place]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if depth < 0:
                return place
            if depth == 0 and sign == "}":
                return place + 1
        elif depth == 0 and (sign == ";" or (sign == "," and is_field)):
            return place + 1
    return len(code)


def production(text):
    """The code of a file without comments, literals, and what is for tests."""
    code = NO_CODE.sub(blank, text)
    while test := FOR_TESTS.search(code):
        end = end_of_item(code, test.end())
        code = code[: test.start()] + re.sub(r"[^\n]", " ", code[test.start() : end]) + code[end:]
    return code


def leaves(tree, before=()):
    """The paths of a `use`, each with the name that it gets: `a::{b, c as d}` are (a, b) as b and (a, c) as d."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    path = before + tuple(part.strip() for part in head.split("::") if part.strip())
    if not brace:
        *path, last = path or ("",)
        last, _, alias = (part.strip() for part in last.partition(" as "))
        if last == "self" and path:
            *path, last = path
        if last:
            yield (*path, last), alias or last
        return
    depth, part = 0, ""
    for sign in rest[: rest.rindex("}")] + ",":
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            yield from leaves(part, path)
            part = ""
        else:
            part += sign


class Module:
    """A module: its file, and what its names lead to."""

    def __init__(self, file, path, code):
        self.file, self.path = file, path
        self.uses, self.aliases, self.globs, self.reexports = [], {}, [], []
        self.body = USE.sub(self.read_use, code)
        self.defined = set(DEFINITION.findall(self.body))

    def read_use(self, match):
        for path, name in leaves(match[2]):
            if name == "*":
                self.globs.append(path[:-1])
                continue
            if name != "_":
                self.aliases[name] = path
            (self.reexports if match[1] else self.uses).append((path, name))
        return blank(match)

    def names(self, name):
        """Whether the module's own code uses a name that it re-exports."""
        after = "" if name[0].isupper() else r"\s*(?:::|\()"
        return re.search(rf"(?<![\w.:])(?<!fn ){name}\b{after}", self.body)


class Crate:
    """The modules below one crate root, by path."""

    def __init__(self, root):
        self.modules = {}
        self.read(root, root.parent, (), root.read_text())

    def read(self, file, folder, path, text):
        self.walk(file, folder, path, text, production(text))

    def walk(self, file, folder, path, text, code):
        """Takes the modules out of the code, those in braces and those in files, and keeps the rest."""
        place = 0
        while match := MODULE.search(code, place):
            name, sign = match.groups()
            inner = (*path, name)
            if sign == "{":
                end = end_of_item(code, match.start(1))
                self.walk(file, folder / name, inner, text, " " * match.end() + code[match.end() : end - 1])
            else:
                end = match.end()
                given = PATH_OF_MODULE.search(text, match.start(), match.end())
                found = [file.parent / given[1]] if given else [folder / f"{name}.rs", folder / name / "mod.rs"]
                for child in filter(Path.exists, found):
                    below = child.parent if given or child.name == "mod.rs" else folder / name
                    self.read(child, below, inner, child.read_text())
            code = code[: match.start()] + re.sub(r"[^\n]", " ", code[match.start() : end]) + code[end:]
            place = end
        self.modules[path] = Module(file, path, code)

    def find(self, start, path, seen=frozenset()):
        """The file that defines what a path leads to from a module, and the name; None for modules and other crates."""
        if (start, path) in seen:
            return None
        seen |= {(start, path)}
        here, names = start, list(path)
        if names[0] in ("crate", "self", "super"):
            here = () if names[0] == "crate" else start
            while names and names[0] in ("crate", "self", "super"):
                here = here[:-1] if names.pop(0) == "super" else here
        while names:
            module, name = self.modules.get(here), names.pop(0)
            if (*here, name) in self.modules:
                here = (*here, name)
            elif module is None:
                return None
            elif name in module.defined:
                return module.file, name
            elif name in module.aliases:
                return self.find(here, (*module.aliases[name], *names), seen)
            else:
                globs = [glob for glob in module.globs if self.is_inside(here, glob[0])]
                through = (self.find(here, (*glob, name, *names), seen) for glob in globs)
                return next(filter(None, through), None)
        return None

    def is_inside(self, here, name):
        """Whether a path that begins with the name leads into this crate."""
        return name in ("crate", "self", "super") or (*here, name) in self.modules or name in self.modules[here].aliases

    def is_above(self, file, path):
        """Whether a file is that of a module around the one at the path."""
        return any(self.modules[path[:length]].file == file for length in range(len(path)))

    def imports(self):
        """Which file takes what from which: {file: {other file: {names}}}."""
        found = {}
        for module in self.modules.values():
            used = module.uses + [entry for entry in module.reexports if module.names(entry[1])]
            paths = [path for path, _ in used] + [tuple(path.split("::")) for path in PATH.findall(module.body)]
            for path in paths:
                file, name = self.find(module.path, path) or (None, None)
                if file not in (None, module.file) and not self.is_above(file, module.path):
                    found.setdefault(module.file, {}).setdefault(file, set()).add(name)
        return found


def circles(imports):
    """The sets of files of which each leads to all others."""
    reach = {}
    for file in imports:
        todo, reach[file] = [file], set()
        while todo:
            new = set(imports.get(todo.pop(), ())) - reach[file]
            reach[file] |= new
            todo += new
    found = {frozenset(other for other in reach[file] if file in reach.get(other, ())) for file in imports}
    return sorted((sorted(circle) for circle in found if circle), key=lambda circle: (-len(circle), circle))


def members():
    """The folders of the workspace's crates."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]


def roots(crate):
    """The root files of a crate's library and programs."""
    return [file for pattern in ("lib.rs", "main.rs", "bin/*.rs", "bin/*/main.rs") for file in sorted((crate / "src").glob(pattern))]


def main(names):
    if unknown := set(names) - set(members()):
        sys.exit(f"circles.py: no crate {', '.join(sorted(unknown))}; there are {', '.join(members())}")
    files, wrong = set(), False
    for root in (root for member in names or members() for root in roots(ROOT / member)):
        crate = Crate(root)
        files |= {module.file for module in crate.modules.values()}
        imports = crate.imports()
        for circle in circles(imports):
            wrong = True
            print(f"{len(circle)} files import each other:")
            for file in circle:
                for other in sorted(set(imports[file]) & set(circle)):
                    taken = ", ".join(sorted(imports[file][other]))
                    print(f"  {file.relative_to(ROOT)} -> {other.relative_to(ROOT)}: {taken}")
    if wrong:
        sys.exit(1)
    print(f"all {len(files)} files are free of import circles")


if __name__ == "__main__":
    main(sys.argv[1:])
