#!/usr/bin/env python3
"""Tests the built site in a headless Chromium: site_browser_test.py SITE CHROMIUM.

No page asks another host, the console stays empty, the playground on the first page plays if it is built, and the search finds
what it is asked for. Ends with `N passed, N failed`.
"""

import sys
import threading
import traceback
from pathlib import Path

from browser import Browser
from playground_serve import server

PLAYGROUND = "playground/index.html"
FRAME = "document.querySelector('main iframe')"


class Site:
    """The site in the browser."""

    def __init__(self, browser, folder, address):
        self.browser, self.folder, self.address = browser, Path(folder), address
        self.has_playground = (self.folder / PLAYGROUND).exists()

    def open(self, page):
        self.browser.open("about:blank")
        self.browser.open(self.address + page)
        self.browser.shows("document.readyState === 'complete'")


def first_page(site):
    site.open("index.html")
    site.browser.shows("document.querySelector('pre.mermaid svg')")
    assert site.browser.value(f"Boolean({FRAME})") == site.has_playground, "the first page has the playground if it is built, and no empty frame"
    if not site.has_playground:
        print("       without the playground, which is not built")
        return
    # It is loaded when it is seen.
    site.browser.value(f"{FRAME}.scrollIntoView()")
    site.browser.shows(f"{FRAME}.contentDocument?.body?.dataset.state === 'ready'")


def phone(site):
    """On a phone the playground has a page of its own: a picture leads there."""
    site.browser.look(360, 740)
    site.open("index.html")
    assert not site.browser.value(f"{FRAME}.checkVisibility()"), "no frame that scrolls inside the page"
    site.browser.shows("(({complete, naturalWidth, offsetHeight}) => complete && naturalWidth > 0 && offsetHeight > 100)(document.querySelector('.tryout-link img'))")
    site.browser.value("document.querySelector('.tryout-link').click()")
    site.browser.shows("location.pathname === '/playground/index.html' && document.body?.dataset.state === 'ready'")


def search(site, words, page):
    site.open("index.html")
    site.browser.value("document.getElementById('mdbook-search-toggle').click()")
    site.browser.shows("document.activeElement.id === 'mdbook-searchbar'")
    site.browser.call("Input.insertText", text=words)
    site.browser.press("ArrowLeft")
    found = "[...document.querySelectorAll('#mdbook-searchresults a')].map(link => new URL(link.href).pathname)"
    site.browser.shows(f"{found}.includes('/{page}')")


def every_page(site):
    """The scripts of each page run, and ask no other host. The page for printing repeats all others."""
    pages = [path.relative_to(site.folder) for path in sorted(site.folder.rglob("*.html"))]
    pages = [page for page in pages if page.parts[0] != "playground" and page.name not in ("print.html", "toc.html", "404.html")]
    assert pages, f"{site.folder} has no page"
    for page in pages:
        site.open(page.as_posix())
    print(f"       {len(pages)} pages")


def own_requests_only(site):
    strange = [url for url in site.browser.requests if not url.startswith((site.address, "data:", "about:", "blob:"))]
    assert not strange, strange
    assert site.browser.requests, "requests are seen"


def quiet(site):
    assert not site.browser.complaints, site.browser.complaints


def main():
    folder, chromium = sys.argv[1:]
    serving = server(folder, 0)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    browser = Browser(chromium)
    passed = failed = 0

    def judge(name, test, *arguments):
        nonlocal passed, failed
        try:
            browser.look(1280)
            test(*arguments)
        except Exception:  # noqa: BLE001: one that fails must not hide the others
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
        else:
            passed += 1
            print(f"ok     {name}", flush=True)

    try:
        site = Site(browser, folder, f"http://127.0.0.1:{serving.server_address[1]}/")
        judge("the first page draws its diagram, and its playground is ready", first_page, site)
        if site.has_playground:
            judge("a phone gets a picture that leads to the playground", phone, site)
        for words, page in [("rollback", "upgrade.html"), ("LLM", "streaming.html")]:
            judge(f"the search finds {page} by {words}", search, site, words, page)
        judge("every page opens", every_page, site)
        judge("nothing is loaded from elsewhere", own_requests_only, site)
        judge("nothing is complained of in the console", quiet, site)
    finally:
        browser.close()
        serving.shutdown()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
