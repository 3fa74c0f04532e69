#!/usr/bin/env python3
"""Checks what the Markdown files say of this repository against the repository.

Checked against the tree: back-ticked paths, relative links with their anchors, `make` targets, and metric names
(docs/metrics.md, docs/control-metrics.md). If the text above a table links to a committed run or to docs/bench.md, the
linked record must contain each figure of the table; below a heading on load tests such a link is required. Tests that are named
after a back-ticked Rust file (`a/b.rs`: `one_name`, `other_name`) must be functions of that file. Prose, and the comments of
Rust sources, use one word for each idea (docs/glossary.md): see WORDS. Each page in docs/ is once in docs/SUMMARY.md, the
site's table of contents, which may also name pages outside; `ci/site_pages.py` checks the links of the built site. Files that only a build creates (dist/,
out/, .tools/) are assumed to exist. Each bootstrap of an example has the labels for metrics of dashboards/stats-tags/envoy.yaml.
Each `config_discovery` in a page, an example or the command's help has a default configuration, which is in force from the start.
Each `failStrategy` or `failure_policy` in a page, an example or a manifest is `FAIL_OPEN`.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Measurements that documents quote.
RECORDS = ("loadtests/baselines/", "docs/bench.md")
FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")
BUILT = ("dist/", "out/", ".tools/", "target/")
# A name with one of these endings is a file.
FILE = re.compile(r"\.(md|rs|toml|sh|py|ya?ml|json|allow|keep|env|wasm)$")
PATH = re.compile(r"^[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)*/?$")
METRIC = re.compile(r"\btidegate_[a-z0-9_]+[a-z0-9]\b")
# A Rust file, and the names after it: of three words at least, so that no field or type is meant.
TESTS = re.compile(r"`([\w./-]+\.rs)`:? +(`[a-z0-9]+(?:_[a-z0-9]+){2,}`(?:(?:,| and|, and) +`[a-z0-9]+(?:_[a-z0-9]+){2,}`)*)")
# Words of the same shape that are not metrics: crates, and the details of a local reply.
NO_METRIC = re.compile(r"^tidegate_(core|control|filter|native|testbed|loadtests|pack|worker|shed_.*)$")

# A comment of Rust that is alone in its line, or follows code. A URL in a text is not one.
COMMENT = re.compile(r"^\s*//[/!]?(?: |$)(.*)|[;{},)\]] // (.*)")

# The labels for metrics in a bootstrap of Envoy.
STATS_CONFIG = re.compile(r"^stats_config:\n(?: .*\n)+", re.MULTILINE)

# A filter by discovery, and what it must have: without, an Envoy that starts while no control service answers answers 500.
DISCOVERY = re.compile(r"^( *)(?:- )?config_discovery:\n((?:\1 +.*\n)+)", re.MULTILINE)
DEFAULT = ("default_config:", "apply_default_config_without_warming: true")

# Records of decisions stay as they were written.
HISTORY = ("docs/decisions/", "loadtests/baselines/")
# Phrases that prose must not use, and what to write instead.
CONFIGURATION = r"(?:configurations?|polic(?:y|ies)|documents?|settings)"
REFUSED = r"refus(?:e[sd]?|als?)"
WORDS = (
    (rf"\b{CONFIGURATION}\b[^.;:|]{{0,40}}\b{REFUSED}\b", "a configuration is rejected"),
    (rf"\b{REFUSED}\b[^.;:|]{{0,30}}\b{CONFIGURATION}\b", "a configuration is rejected"),
    (r"\bwhat was learned\b", "learned state"),
    (r"\b(?:whoever|lest|anew|thereof|wherein|whereby)\b", "name the caller, request or program; so that, again"),
    (r"\bsave (?:where|that|for|when)\b", "except"),
    (r"\b(?:is|are) let be\b|\bbe it\b", "name what happens"),
    (r"\b(?:is|are|was|were) (?:told|said) again\b", "repeated, reported again"),
    (r"\b(?:is|are|was|were) no part of\b", "is not part of"),
    (r"\b(?:is|are|was|were) no \w+ any ?more\b", "no longer"),
    (r"\beach (?!of\b)\w+ more\b", "each additional"),
    (r"\bbec[oa]mes? of\b", "what happens to it"),
    (r"\bwhat (?:\w+ ){1,3}makes? of (?:it|them|a|an|the|that|those)\b", "name the result"),
    (r"\bh(?:eld|olds?|olding) (?:\w+ ){0,3}against\b", "compare with"),
    (r"\b(?:is|are|was|were|be|be\w+) let in\b|\blets (?:it |them |all )?in\b", "admit"),
    (r"\b(?:is|are|was|were) taken for (?!granted)", "counts as, is treated as"),
    (r"\bstands? (?:at|below|above|here|there|beside)\b", "is"),
    (r"\bas (?:it|they) (?:is|are) told\b", "unchanged"),
    (r"\bin place of\b", "instead of"),
    (r"\bfor want of\b", "without"),
    (r"\bgo(?:es)? on with\b", "continue with"),
    (r"\b(?:behaviours?(?!\])|licences?|defences?|favours?|colours?|cancelled|modelled|utilisation)\b", "American spelling"),
)


def listed(*patterns):
    """Files that are tracked or would be."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).exists()]


def parts(text):
    """Prose without code, the inline code, and the lines of fenced code; each with its line number."""
    prose, inline, fenced, fence = [], [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = None
            else:
                fenced.append((number, line))
        elif mark:
            fence = mark[1]
        else:
            inline += [(number, code.strip()) for code in re.findall(r"`([^`]+)`", line)]
            prose.append((number, re.sub(r"`[^`]*`", "`", line)))
    return prose, inline, fenced


def anchors(text):
    """The anchors of a page, made from its headings as GitHub does."""
    found, fence = set(), False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fence = not fence
        heading = re.match(r"#+ +(.*)", line)
        if heading and not fence:
            words = re.sub(r"[^\w\- ]", "", heading[1].strip().lower())
            found.add(words.replace(" ", "-"))
    return found


def is_path(code, top):
    """Whether inline code means a path of this repository."""
    if not PATH.match(code) or code.startswith(BUILT) or code in (".", ".."):
        return False
    if "/" in code.rstrip("/") or code.endswith("/"):
        return code.split("/")[0] in top or bool(FILE.search(code))
    return code in top


def exists(code, page):
    name = code.rstrip("/")
    return any(next(base.glob(name), None) for base in (ROOT, page.parent))


def targets():
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def metrics():
    """Metrics and their labels, which have names of the same shape."""
    pages = [ROOT / name for name in ("docs/metrics.md", "docs/control-metrics.md", "dashboards/stats-tags/envoy.yaml")]
    return {name for page in pages for name in METRIC.findall(page.read_text())}


def sections(text):
    """The sections of a page: number of the first line, heading, lines."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            found.append((number, line.lstrip("# "), []))
        elif found:
            found[-1][2].append(line)
    return found


def figures(text):
    return {figure.replace(",", "") for figure in FIGURE.findall(text)}


def tables(page):
    """The tables of a page: number of the first row, heading above, the text between, rows."""
    for first, heading, lines in sections(page.read_text()):
        text, rows = [], []
        for number, line in enumerate([*lines, ""], first + 1):
            if line.startswith("|"):
                rows.append(line)
                continue
            if rows:
                yield number - len(rows), heading, "\n".join(text), rows
                text, rows = [], []
            text.append(line)


def records(page, text):
    """The records of measurements that a text links to."""
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        record = (page.parent / link).resolve()
        if record.is_file() and record.is_relative_to(ROOT) and str(record.relative_to(ROOT)).startswith(RECORDS):
            yield record


def quoted(page):
    """What is wrong with tables of measurements: each figure beside its row's name is one of the record, or rounds one."""
    for first, heading, text, rows in tables(page):
        known = set().union(*(figures(record.read_text()) for record in records(page, text)))
        if not known and "load test" in heading.lower():
            yield first, f"the table of \"{heading}\" has no link to a run in {RECORDS[0]} above it"
        for number, row in enumerate(rows, first):
            cells = row.strip().strip("|").split("|")[1:]
            for figure in sorted(figures(" ".join(cells))) if known else ():
                decimals = len(figure.partition(".")[2])
                if figure not in known and all(f"{float(other):.{decimals}f}" != figure for other in known):
                    yield number, f"{figure} is in no record that is linked above the table"


def tests(text):
    """The tests that a text names: number of the line, file, name."""
    flat = text.replace("\n", " ")
    for found in TESTS.finditer(flat):
        for name in re.findall(r"`(\w+)`", found[2]):
            at = text.count("\n", 0, flat.index(name, found.start(2))) + 1
            yield at, found[1], name


def has_test(source, name):
    """Whether a Rust source has a function of this name, or a macro makes one of it."""
    return re.search(rf"\bfn {name}\b|^\s*{name}: \"", source, re.MULTILINE) is not None


def absent(page, text):
    """What is wrong with the tests that a page names."""
    for number, name, test in tests(text):
        files = [base / name for base in (ROOT, page.parent) if (base / name).is_file()]
        if files and not any(has_test(file.read_text(), test) for file in files):
            yield number, f"`{name}` has no test `{test}`"


def comments(source):
    """The comments of a Rust source without code, each with its line number."""
    for number, line in enumerate(source.splitlines(), 1):
        comment = COMMENT.search(line)
        if comment:
            text = re.sub(r"\]\([^)]*\)", "]", comment[1] or comment[2] or "")
            yield number, re.sub(r"`[^`]*`", "`", text)


def worded(prose):
    """Phrases in prose that WORDS forbid, line by line."""
    for number, line in prose:
        for words, instead in WORDS:
            for found in re.finditer(words, line, re.IGNORECASE):
                yield number, f"\"{found[0]}\": say it otherwise ({instead})"


def check(page, top, make, known):
    text = page.read_text()
    prose, inline, fenced = parts(text)
    if not str(page.relative_to(ROOT)).startswith(HISTORY):
        yield from worded(prose)
    for number, code in inline:
        if is_path(code, top) and not exists(code, page):
            yield number, f"`{code}` is not there"
    for number, line in prose:
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name) if name else page
            if name.startswith(BUILT):
                continue
            if not target.exists():
                yield number, f"the link to {link} leads nowhere"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                yield number, f"{target.name} has no heading #{anchor}"
    yield from quoted(page)
    yield from absent(page, text)
    for number, code in inline + fenced:
        for target in re.findall(r"(?:^|&& |\$ )make ([a-z][a-z0-9-]*)", code):
            if target not in make:
                yield number, f"`make {target}` is no target"
    for number, line in enumerate(text.splitlines(), 1):
        for name in METRIC.findall(line):
            if name not in known and not NO_METRIC.match(name):
                yield number, f"{name} is in neither docs/metrics.md nor docs/control-metrics.md"


def contents(summary, pages):
    """What is wrong with the site's table of contents: the line, and the page that is missing or there twice."""
    seen = {}
    for number, line in enumerate(summary.splitlines(), 1):
        for name in re.findall(r"\]\(([^)\s]+)\)", line):
            if name in seen:
                yield number, f"{name} stands here and in line {seen[name]}"
            seen.setdefault(name, number)
            # Whether a page outside is there is checked as any link.
            if name not in pages and not name.startswith("../"):
                yield number, f"docs/ has no page {name}"
    for name in sorted(pages - set(seen) - {"SUMMARY.md"}):
        yield len(summary.splitlines()), f"{name} is missing"


def labels(bootstrap, generated):
    """What is wrong with the labels for metrics in a bootstrap: nothing, if they are those of the generated file."""
    found, expected = STATS_CONFIG.findall(bootstrap), STATS_CONFIG.findall(generated)
    if expected and found == expected:
        return
    lines = [set(re.findall(r"tag_name: (\w+)", "".join(blocks))) for blocks in (found, expected)]
    names = ", ".join(sorted(lines[0] ^ lines[1])) or "the order or an expression"
    yield bootstrap.count("\n", 0, max(bootstrap.find("stats_config:"), 0)) + 1, f"stats_config is not the generated one: {names}"


def without_default(text):
    """Which filters by discovery lack a default configuration."""
    for found in DISCOVERY.finditer(text):
        for field in DEFAULT:
            if not re.search(rf"^ *{field}", found[2], re.MULTILINE):
                yield text.count("\n", 0, found.start()) + 1, f"config_discovery without `{field}`: see docs/serving.md"


def strategies(text):
    """Where a snippet does not begin with FAIL_OPEN: code that sets the strategy, but no prose and no comment about it."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in re.findall(r"^[^#`|]*\b(?:failStrategy|failure_policy): (FAIL_\w+)", line):
            if found != "FAIL_OPEN":
                yield number, f"{found}: a snippet begins with FAIL_OPEN, so that requests pass without the filter"


def main():
    files = listed()
    top = {path.relative_to(ROOT).parts[0] for path in files}
    pages = [path for path in files if path.suffix == ".md"]
    make, known = targets(), metrics()
    wrong = 0
    for page in sorted(pages):
        for number, message in check(page, top, make, known):
            print(f"{page.relative_to(ROOT)}:{number}: {message}", file=sys.stderr)
            wrong += 1
    sources = [path for path in files if path.suffix == ".rs"]
    for source in sorted(sources):
        for number, message in worded(comments(source.read_text())):
            print(f"{source.relative_to(ROOT)}:{number}: {message}", file=sys.stderr)
            wrong += 1
    shown = [path for path in files if path.suffix in (".md", ".yaml") or path.is_relative_to(ROOT / "control/src/command")]
    for path in sorted(shown):
        for number, message in without_default(path.read_text()):
            print(f"{path.relative_to(ROOT)}:{number}: {message}", file=sys.stderr)
            wrong += 1
    for path in sorted(path for path in files if path.suffix in (".md", ".yaml") and not str(path.relative_to(ROOT)).startswith(HISTORY)):
        for number, message in strategies(path.read_text()):
            print(f"{path.relative_to(ROOT)}:{number}: {message}", file=sys.stderr)
            wrong += 1
    tags = (ROOT / "dashboards/stats-tags/envoy.yaml").read_text()
    for bootstrap in sorted(path for path in files if path.name == "envoy.yaml" and path.is_relative_to(ROOT / "examples")):
        for number, message in labels(bootstrap.read_text(), tags):
            print(f"{bootstrap.relative_to(ROOT)}:{number}: {message}", file=sys.stderr)
            wrong += 1
    docs = ROOT / "docs"
    names = {str(page.relative_to(docs)) for page in pages if page.is_relative_to(docs)}
    for number, message in contents((docs / "SUMMARY.md").read_text(), names):
        print(f"docs/SUMMARY.md:{number}: {message}", file=sys.stderr)
        wrong += 1
    if wrong:
        sys.exit(f"docs.py: error: {wrong} statements do not hold")
    print(f"docs.py: {len(pages)} pages agree with the repository, and comments in {len(sources)} files use its words", file=sys.stderr)


if __name__ == "__main__":
    main()
