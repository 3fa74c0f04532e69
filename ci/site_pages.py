#!/usr/bin/env python3
"""What the documentation site needs beyond mdBook.

    ci/site_pages.py                  a preprocessor of mdBook: reads the book on standard input, and writes it anew
    ci/site_pages.py supports NAME    says to mdBook that every renderer is supported
    ci/site_pages.py repository       prints the address of the repository
    ci/site_pages.py prefix           prints the path of the site on its host
    ci/site_pages.py check [FOLDER]   holds the built site against itself and the repository

The pages in docs/ are written for GitHub as well. There a link may leave docs/, lead to a folder, or lead to a README; a diagram is a
fenced block. The preprocessor turns such links into those of the site or of the repository, and such blocks into what
ci/site/diagrams.js draws. A page outside docs/ that docs/SUMMARY.md names (`../examples/README.md`) is a page of the site, at its path in
the repository. The mark `<!-- playground -->` becomes the playground, if it is built.

Once ci/release.env names a home, its names stand for the placeholders `registry.example.com/tidegate` and `example/tidegate`, except in a
section that pushes: there the registry is the reader's own. What stands between `<!-- before the first release -->` and
`<!-- end -->` is left out then.
"""

import functools
import json
import os
import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import env_file

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SITE = ROOT / "out/site"
PLAYGROUND = "playground/index.html"
# The end of a link: its text may have begun in the line before.
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"\s*(```+|~~~+)")
BRANCH = "main"
# What a reader types to push to a registry of their own.
PUSHES = re.compile(r"oci-push|release-push|docker push|REPOSITORY=")
# With dots as in a pattern as well.
OWNER = re.compile(r"(?<![\w.-])example/tidegate\b")
REGISTRY = re.compile(r"\bregistry\.example\.com/tidegate\b")
UNRELEASED = re.compile(r"<!-- before the first release -->(.*?)<!-- end -->", re.DOTALL)
# Languages of code that mdBook cannot color, and complains of in the console.
UNCOLORED = ("promql",)


@functools.cache
def repository():
    """The address of the repository: from the environment, or the one file that names owner and registry."""
    if os.environ.get("TIDEGATE_REPOSITORY_URL"):
        return os.environ["TIDEGATE_REPOSITORY_URL"].rstrip("/")
    return env_file.release()["RELEASE_SOURCE_URL"].rstrip("/")


def prefix():
    """The path of the site on its host, with which links of the page for unknown addresses begin."""
    return urlsplit(env_file.release()["RELEASE_SITE_URL"]).path.rstrip("/") + "/"


@functools.cache
def outside():
    """The pages outside docs/ that the table of contents names, by their paths in the repository."""
    return {posixpath.normpath(posixpath.join("docs", name)) for name in re.findall(r"\]\((\.\./[^)\s]+)\)", (DOCS / "SUMMARY.md").read_text())}


def place(path):
    """Where the site has a file of the repository; nothing, if it has it not."""
    if path.startswith("docs/"):
        path = path.removeprefix("docs/")
    elif path not in outside():
        return None
    # mdBook builds index.html from README.md, but does not follow links there.
    return re.sub(r"README\.md$", "index.md", path)


def moved(link, page):
    """A link of a page (its path below docs/), as the site has it."""
    if re.match(r"[a-z]+:", link) or link.startswith("#"):
        return link
    name, hash_, anchor = link.partition("#")
    here = posixpath.normpath(posixpath.join("docs", page))
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), name))
    readme = posixpath.join(path, "README.md")
    if (ROOT / readme).exists() and place(readme):
        path = readme
    to = place(path)
    if not to:
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{repository()}/{kind}/{BRANCH}/{path}{hash_}{anchor}"
    return posixpath.relpath(to, posixpath.dirname(place(here))) + hash_ + anchor


def diagram(lines):
    text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;")
    return f'<pre class="mermaid">\n{text}\n</pre>'


def playground():
    # Not of the class `playground`: that is mdBook's own name for snippets, which it sends to a server for Rust.
    if not (ROOT / "out" / PLAYGROUND).exists():
        return ""
    return (
        f'<iframe class="tryout" src="{PLAYGROUND}" title="Playground" loading="lazy"></iframe>\n\n'
        f'<p><a class="tryout-link" href="{PLAYGROUND}"><img src="images/playground.png" alt=""> Open the playground in a page of its own.</a></p>'
    )


def rewritten(text, page):
    """The text of a page, for the site."""
    result, fence, drawn = [], None, None
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = None
                if drawn is not None:
                    result.append(diagram(drawn))
                    drawn = None
                    continue
            elif drawn is not None:
                drawn.append(line)
                continue
            result.append(line)
        elif mark:
            fence = mark[1]
            if line.strip() == "```mermaid":
                drawn = []
            else:
                result.append(re.sub(rf"(?<=`)({'|'.join(UNCOLORED)})$", "text", line))
        elif line.strip() == "<!-- playground -->":
            result.append(playground())
        else:
            # Code that shows a link is not one.
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = [LINK.sub(lambda found: found[1] + moved(found[2], page) + found[3], part) for part in parts[::2]]
            result.append("".join(parts))
    return "\n".join(result) + "\n"


def sections(text):
    """A page, cut before each heading. In code, a comment may look like one."""
    found, fence = [""], None
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = None
        elif line.startswith("#") and not fence:
            found.append("")
        found[-1] += line
    return found


def named(text, names):
    """The text of a page with the names of owner and registry, if there are any but placeholders."""
    if any("example" in names[name] for name in ("RELEASE_SOURCE_URL", "RELEASE_REGISTRY", "RELEASE_SITE_URL")):
        return UNRELEASED.sub(lambda found: found[1], text)
    owner = f"{names['RELEASE_OWNER']}/{names['RELEASE_REPOSITORY']}"
    result = ""
    for section in sections(UNRELEASED.sub("", text)):
        if not PUSHES.search(section):
            section = REGISTRY.sub(lambda _: names["RELEASE_REGISTRY"], section)
        result += OWNER.sub(lambda _: owner, section)
    return result


def preprocess(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            source = chapter.get("source_path")
            if source:
                chapter["content"] = rewritten(named(chapter["content"], env_file.release()), source)
                if source.startswith("../"):
                    chapter["path"] = place(posixpath.normpath(posixpath.join("docs", source)))
            preprocess(chapter["sub_items"])


class Page(HTMLParser):
    """The ids of a built page, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.base = set(), set(), None
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        if tag == "base":
            self.base = dict(attributes).get("href")
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.add(value)


def wrong(site):
    """What does not hold in a built site."""
    # The page for printing repeats all others under anchors of its own; the playground has its own tests.
    paths = [path for path in sorted(site.rglob("*.html")) if path.name != "print.html" and "playground" not in path.parts]
    pages = {path: Page(path) for path in paths}
    root = repository()
    for path, page in pages.items():
        here = path.relative_to(site)
        if here.name == "404.html" and page.base != prefix():
            yield f"{here}: its links begin at {page.base}, but the site is at {prefix()}"
        for link in sorted(page.links):
            if link.startswith(root + "/"):
                name = unquote(urlsplit(link[len(root) + 1 :]).path)
                name = re.sub(rf"^(?:blob|tree|edit)/{BRANCH}/", "", name)
                if not (ROOT / name).exists():
                    yield f"{here}: the repository has no {name}"
                continue
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = link.partition("#")
            name = unquote(urlsplit(name).path)
            # The page that is shown for an unknown address has links from the root of the host.
            base = site if name.startswith("/") or here.name == "404.html" else path.parent
            target = (base / name.lstrip("/")).resolve() if name else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{here}: the link to {link} leads nowhere"
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                yield f"{here}: {target.relative_to(site)} has no #{anchor}"
    if not pages:
        yield f"{site} has no page"


def check(site):
    found = list(wrong(site))
    for message in found:
        print(f"site_pages.py: {message}", file=sys.stderr)
    if found:
        sys.exit(f"site_pages.py: error: {len(found)} links of the site do not hold")
    print(f"site_pages.py: all links of {sum(1 for _ in site.rglob('*.html'))} pages hold", file=sys.stderr)


def main():
    match sys.argv[1:]:
        case ["supports", _]:
            return
        case ["repository"]:
            print(repository())
        case ["prefix"]:
            print(prefix())
        case ["check", *folder]:
            check(Path(folder[0]).resolve() if folder else SITE)
        case []:
            _, book = json.load(sys.stdin)
            preprocess(book["items"])
            json.dump(book, sys.stdout)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
