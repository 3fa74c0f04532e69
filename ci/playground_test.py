#!/usr/bin/env python3
"""Tests the playground in a headless Chromium, against the simulator on the command line.

playground_test.py PAGE SIMULATOR CHROMIUM [PICTURES]: the folder of the built page, the program tidegate-sim, the browser, and a folder
for pictures of the page, if any are wanted. Ends with `N passed, N failed`.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from browser import BOUND, Browser
from playground_serve import server

# Eleven runs and their rivals: stories as they are told and with other settings, and stories of one's own.
RUNS = [
    "story=step",
    "story=outage&rival=linkerd",
    "story=retry-storm&rival=adaptive-concurrency&seed=7",
    "story=chain-last-2x&rival=gradient2",
    "story=adversary-crash-2x&rival=dagor",
    "story=fleet-overload&rival=bbr",
    "story=overload-2x&rival=protego&slo=150&push=10:500,15.5:100",
    "story=own&load=0.5*5,3*5,0.8&len=20&body=300&holds=yes&retries=3&stubborn=yes&rival=vegas",
    "story=own&load=1.2&len=20&incident=hang&from=5&lasts=5&adversary=flood&harm=0.5&proxies=3&rival=hystrix",
    "story=own&load=280*5,1200*5,280&unit=rps&len=20&service=20&rival=adaptive-concurrency",
    "story=own&load=0.6&len=15&errors=10&batch=40&spread=0&endpoints=2&slots=8&incident=slow&from=5&lasts=5&rival=both",
]
# The digests of both are in the table of figures.
DIGESTS = "[...document.querySelectorAll('#runs tr:last-child td')].map(cell => cell.textContent)"
MOST_BYTES = 1_572_864

# Relative luminance and contrast as WCAG 2 defines them, for everything that holds text.
CONTRAST = r"""(() => {
  const luminance = color => {
    const [r, g, b] = color.match(/[\d.]+/g).map(Number).map(value => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let least = { ratio: Infinity };
  for (const element of document.querySelectorAll('body *')) {
    const holdsText = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!holdsText || !element.checkVisibility() || element.closest('svg')) continue;
    let ground = element;
    while (ground && /, 0\)$/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const behind = luminance(getComputedStyle(ground ?? document.body).backgroundColor);
    const ink = luminance(getComputedStyle(element).color);
    const ratio = (Math.max(ink, behind) + 0.05) / (Math.min(ink, behind) + 0.05);
    if (ratio < least.ratio) least = { ratio, text: element.textContent.slice(0, 40), color: getComputedStyle(element).color };
  }
  return least;
})()"""


class Page:
    """The page in the browser, and how a person uses it."""

    def __init__(self, browser, address, simulator):
        self.browser, self.address, self.simulator = browser, address, simulator
        self.downloads = tempfile.TemporaryDirectory(prefix="playground-files-")

    def open(self, fragment):
        # A new document each time: a change of the fragment alone loads nothing.
        self.browser.open("about:blank")
        self.browser.open(f"{self.address}#{fragment}")
        self.settled()

    def settled(self):
        self.browser.shows("['ready', 'failed'].includes(document.body?.dataset.state)")
        failure = self.browser.value("document.getElementById('failure').hidden ? '' : document.getElementById('failure').textContent")
        assert not failure, failure

    def faults(self):
        return self.browser.value("document.getElementById('faults').hidden ? '' : document.getElementById('faults').textContent")

    def text(self, part):
        return self.browser.value(f"document.getElementById('{part}').textContent")

    def focus(self, part):
        self.browser.value(f"document.getElementById('{part}').focus()")

    def focused(self):
        return self.browser.value("document.activeElement.id")

    def fragment(self):
        return self.browser.value("location.hash.slice(1)")

    def at(self):
        return float(self.browser.value("document.getElementById('scrub').value"))

    def saved(self):
        """Saves the run as a file, as a person does; its path."""
        # A folder for each: the browser replaces a file of the same name.
        folder = tempfile.mkdtemp(dir=self.downloads.name)
        self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        self.browser.value("document.getElementById('save').click()")
        end = time.monotonic() + BOUND
        while time.monotonic() < end:
            for path in Path(folder).glob("*.toml"):
                return path
            time.sleep(0.02)
        raise AssertionError("no file was saved")

    def native(self, scenario, contender):
        told = subprocess.run([self.simulator, "run", str(scenario), "--contender", contender], capture_output=True, text=True, check=False)
        found = re.search(r"digest ([0-9a-f]{16})$", told.stdout.strip())
        assert found, f"{scenario} {contender}: {told.stdout[-300:]} {told.stderr}"
        return found.group(1)


def same_digests(page, fragment):
    page.open(fragment)
    assert not page.faults(), page.faults()
    here = page.browser.value(DIGESTS)
    rival = page.browser.value("document.getElementById('rival').value")
    file = page.saved()
    there = [page.native(file, contender) for contender in ("tidegate", rival)]
    assert here == there and len(set(here)) == 2, f"in the browser {here}, on the command line {there}"
    told = re.fullmatch(r"story=([a-z0-9-]+)(&rival=[a-z0-9-]+)?", page.fragment())
    if told and told.group(1) != "own":
        assert file.stem == told.group(1), "a story as it is told keeps its name"
        assert there[0] == page.native(told.group(1), "tidegate")


def keyboard(page):
    page.open("story=step&rival=bbr")
    assert page.at() == 0
    page.focus("story")
    page.browser.press("Tab")
    assert page.focused() == "rival", page.focused()
    # Space on the page plays and pauses; so does the button.
    page.browser.value("document.activeElement.blur()")
    page.browser.press(" ")
    page.browser.shows("document.body.dataset.playing === 'true' && Number(document.getElementById('scrub').value) > 1")
    page.browser.press(" ")
    page.browser.shows("document.body.dataset.playing === 'false'")
    page.focus("play")
    page.browser.press("Enter")
    page.browser.shows("document.body.dataset.playing === 'false' && Number(document.getElementById('scrub').value) === 30")
    # The moment follows the keys, and so does the explanation.
    page.focus("scrub")
    page.browser.press("Home")
    page.browser.press("ArrowRight", 150)
    assert abs(page.at() - 15) < 0.01, page.at()
    assert page.text("now-title").startswith("At 15.0 s"), page.text("now-title")
    assert "A queue stands" in page.text("why-text"), page.text("why-text")


def curve_by_keyboard(page):
    page.open("story=own")
    before = page.fragment()
    page.focus("curve")
    page.browser.press("ArrowRight", 3)
    page.browser.press("ArrowUp", 2)
    page.settled()
    assert page.fragment() == "story=own&load=0.7*3,0.9,0.7*6,2.5*10,0.7*10", page.fragment()
    assert before != page.fragment()
    said = page.browser.value("document.getElementById('curve').getAttribute('aria-valuetext')")
    assert said == "from second 6: 0.9 times the capacity", said


def curve_of_a_link(page):
    for load, changed in [("0.5*59,3", "0.5,0.6,0.5*57,3"), ("1*10,2", "1,1.1,1*28,2*3")]:
        page.open(f"story=own&load={load}")
        page.focus("curve")
        page.browser.press("ArrowRight")
        page.browser.press("ArrowUp")
        page.settled()
        assert page.fragment() == f"story=own&load={changed}", page.fragment()


def load_in_requests_a_second(page):
    page.open("story=own")
    chosen = "document.getElementById('field-unit')"

    def choose(unit):
        page.browser.value(f"{chosen}.value = '{unit}'; {chosen}.dispatchEvent(new Event('change'))")
        page.settled()

    choose("rps")
    assert page.fragment() == "story=own&load=280*10,1000*10,280*10&unit=rps", page.fragment()
    page.focus("curve")
    page.browser.press("ArrowUp")
    page.settled()
    assert page.fragment() == "story=own&load=290,280*9,1000*10,280*10&unit=rps", page.fragment()
    said = page.browser.value("document.getElementById('curve').getAttribute('aria-valuetext')")
    assert said == "from second 0: 290 requests a second", said
    choose("capacity")
    assert page.fragment() == "story=own&load=0.7*10,2.5*10,0.7*10", page.fragment()


def curve_by_pointer(page):
    page.open("story=own")
    box = page.browser.value("(({left, top, width, height}) => ({left, top, width, height}))(document.getElementById('curve').getBoundingClientRect())")
    y = box["top"] + box["height"] / 2
    page.browser.mouse("mousePressed", box["left"] + 2, y, button="left", clickCount=1, buttons=1)
    page.browser.mouse("mouseMoved", box["left"] + box["width"] - 2, y, button="left", buttons=1)
    page.browser.mouse("mouseReleased", box["left"] + box["width"] - 2, y, button="left", clickCount=1)
    page.browser.shows("location.hash.includes('load=2*30')")
    page.settled()


def hovering(page):
    page.open("story=outage")
    page.browser.value("document.getElementById('end').click()")
    box = page.browser.value("(({left, top, width, height}) => ({left, top, width, height}))(document.querySelector('#chart-limit .u-over').getBoundingClientRect())")
    if box["top"] + box["height"] > 800:
        page.browser.value("document.getElementById('chart-limit').scrollIntoView({block: 'center'})")
        box = page.browser.value("(({left, top, width, height}) => ({left, top, width, height}))(document.querySelector('#chart-limit .u-over').getBoundingClientRect())")
    # The story's outage lasts from second 10 to 20.
    page.browser.mouse("mouseMoved", box["left"] + box["width"] * 0.4, box["top"] + box["height"] / 2)
    page.browser.mouse("mouseMoved", box["left"] + box["width"] * 0.5, box["top"] + box["height"] / 2)
    page.browser.shows("/^At 15.[0-9] s$/.test(document.getElementById('now-title').textContent)")
    assert "open" in page.text("why-breaker"), page.text("why-breaker")
    assert page.text("why-title").startswith("Why: limit"), page.text("why-title")
    assert page.text("why-text").startswith("The breaker is not closed."), page.text("why-text")


def touching(page):
    browser = page.browser
    browser.look(360, 740)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        page.open("story=outage")
        browser.value("document.getElementById('end').click()")
        # Far from the explanation, which is beside the chart of the limit.
        browser.value("document.getElementById('chart-failed').scrollIntoView({block: 'center'})")

        def over():
            box = browser.value("(({left, top, width, height}) => ({left, top, width, height}))(document.querySelector('#chart-failed .u-over').getBoundingClientRect())")
            return box["left"], box["width"], box["top"] + box["height"] / 2

        def touch(kind, share, down=0):
            left, width, y = place
            points = [] if kind == "touchEnd" else [{"x": left + width * share, "y": y + down}]
            browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

        # The story's outage lasts from second 10 to 20.
        place = over()
        touch("touchStart", 0.5)
        touch("touchEnd", 0.5)
        browser.shows("/^At 15.[0-9] s. Why: limit/.test(document.getElementById('pinned-title').textContent)")
        assert page.text("pinned-text").startswith("The breaker is not closed."), page.text("pinned-text")
        seen = "(({top, bottom}) => top > 0 && bottom <= innerHeight && document.elementFromPoint(180, (top + bottom) / 2).closest('#pinned'))"
        assert browser.value(f"Boolean({seen}(document.getElementById('pinned').getBoundingClientRect()))"), "it is on the screen"
        place = over()
        assert place[2] < browser.value("document.getElementById('pinned').getBoundingClientRect().top"), "and not over the chart"
        # A finger along the chart moves the moment, which stays when the finger is gone.
        touch("touchStart", 0.5)
        touch("touchMove", 0.6)
        touch("touchMove", 0.75)
        touch("touchEnd", 0.75)
        browser.shows("/^At 22.[0-9] s$/.test(document.getElementById('now-title').textContent)")
        # A finger that moves down scrolls the page, and asks nothing.
        place, before = over(), browser.value("scrollY")
        touch("touchStart", 0.25)
        for step in range(1, 11):
            touch("touchMove", 0.25, down=step * 15)
        touch("touchEnd", 0.25)
        browser.shows(f"scrollY < {before}")
        assert re.fullmatch(r"At 22.[0-9] s", page.text("now-title")), page.text("now-title")
        browser.value("document.getElementById('unpin').click()")
        assert page.text("now-title") == "At 30.0 s (the playhead)", page.text("now-title")
        assert not browser.value("document.getElementById('pinned').checkVisibility()")
    finally:
        browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


def objective_during_the_run(page):
    page.open("story=own&load=0.7&len=20")
    before = page.browser.value(DIGESTS)[0]
    page.focus("scrub")
    page.browser.press("ArrowRight", 100)
    page.focus("objective")
    page.browser.press("ArrowLeft", 1)
    page.browser.shows("location.hash.endsWith('push=10:250')")
    page.settled()
    assert abs(page.at() - 10) < 0.01, "the playhead stays"
    page.focus("scrub")
    page.browser.press("ArrowRight", 3)
    page.browser.shows("document.getElementById('why-text').textContent.startsWith('The objective became 250 ms at second 10. No queue stands')")
    page.browser.shows(f"({DIGESTS})[0] !== '{before}'")
    assert page.browser.value(DIGESTS)[0] == page.native(page.saved(), "tidegate")
    page.browser.value("document.querySelector('#pushes button').click()")
    page.browser.shows("!location.hash.includes('push')")
    page.browser.shows(f"({DIGESTS})[0] === '{before}'")


def a_link_that_is_wrong(page):
    page.open("story=own&slots=0&speed=9")
    faults = page.faults()
    assert "slots: found 0" in faults and "speed: found" in faults, faults


def fits(page, width, scheme, fragment):
    page.browser.look(width, scheme=scheme)
    page.open(fragment)
    page.browser.value("document.getElementById('end').click()")
    over = page.browser.value("document.documentElement.scrollWidth - window.innerWidth")
    assert over <= 0, f"{over} pixels too wide"
    least = page.browser.value(CONTRAST)
    assert least["ratio"] >= 4.5, least


def first_in_sight(page, width, height):
    page.browser.look(width, height)
    page.open("story=step")
    for part in ("#play", "#chart-good .u-over"):
        middle = page.browser.value(f"(({{top, bottom}}) => (top + bottom) / 2)(document.querySelector('{part}').getBoundingClientRect())")
        assert 0 < middle < height, f"the middle of {part} is at {middle}"


def less_motion(page):
    page.browser.look(1280, reduced=True)
    page.open("story=step")
    page.browser.shows("Number(document.getElementById('scrub').value) === 30")


def size(folder):
    packed = 0
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            packed += len(subprocess.run(["gzip", "-9", "-c", str(path)], capture_output=True, check=True).stdout)
    assert packed <= MOST_BYTES, packed
    print(f"       {packed} bytes, compressed")


def own_files_only(page):
    strange = [url for url in page.browser.requests if not url.startswith((page.address, "data:", "about:", "blob:"))]
    assert not strange, strange
    assert page.browser.requests, "requests are seen"


def quiet(page):
    assert not page.browser.complaints, page.browser.complaints


def without_a_network(page, folder):
    browser = page.browser
    heard, asked = len(browser.complaints), len(browser.requests)
    with tempfile.TemporaryDirectory(prefix="playground-site-") as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        serving = serve(copy)
        port = serving.server_address[1]
        here = Page(browser, f"http://127.0.0.1:{port}/", page.simulator)
        kept = "caches.keys().then(names => names.join())"
        here.open("story=step")
        browser.promises("navigator.serviceWorker.ready.then(({active}) => active.state === 'activated')")
        before = browser.value(kept)
        end(serving)
        # Neither the page nor its service worker reaches the server now.
        here.open("story=outage&rival=linkerd")
        assert not here.faults() and len(browser.value(DIGESTS)) == 2, "it plays"
        # A new build on the same address.
        for name, old, new in [("index.html", "<h1>", "<h1>New: "), ("offline.js", 'VERSION = "', 'VERSION = "new-')]:
            path = Path(copy) / name
            path.write_text(path.read_text().replace(old, new))
        serving = serve(copy, port)
        try:
            here.open("story=step")
            assert browser.value("document.querySelector('h1').textContent").startswith("New: "), "what is new is shown at once"
            browser.promises(f"{kept}.then(names => names !== '{before}' && names.includes('new-') && !names.includes(','))")
        finally:
            end(serving)
        here.open("story=step")
        assert browser.value("document.querySelector('h1').textContent").startswith("New: "), "and kept"
    # The browser says that the network is gone.
    del browser.complaints[heard:]
    strange = [url for url in browser.requests[asked:] if not url.startswith((here.address, "data:", "about:", "blob:"))]
    assert not strange, strange
    del browser.requests[asked:]


def minute(page):
    page.open("story=own&load=1.5&len=60&rival=bbr")
    took = page.browser.value("[...document.querySelectorAll('#runs tr:nth-last-child(2) td')].map(cell => cell.textContent)")
    assert all(re.fullmatch(r"[\d,]+ ms", cell) for cell in took), took
    print(f"       a minute at 1.5 x the capacity: {took[0]} for Tidegate, {took[1]} beside it")


def pictures(page, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, width, scheme, fragment in [
        ("desktop-light", 1280, "light", "story=step"),
        ("desktop-dark", 1280, "dark", "story=own&incident=hang&from=40&rival=adaptive-concurrency"),
        ("phone", 360, "light", "story=outage&rival=gradient2"),
    ]:
        page.browser.look(width, scheme=scheme)
        page.open(fragment)
        page.browser.value("document.getElementById('end').click()")
        page.browser.value("new Promise(requestAnimationFrame)")
        page.browser.picture(f"{folder}/{name}.png", whole=True)


def serve(folder, port=0):
    serving = server(folder, port)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    return serving


def end(serving):
    serving.shutdown()
    serving.server_close()


def main():
    folder, simulator, chromium = sys.argv[1:4]
    serving = serve(folder)
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
        page = Page(browser, f"http://127.0.0.1:{serving.server_address[1]}/", simulator)
        for fragment in RUNS:
            judge(f"the digests are the native ones: {fragment}", same_digests, page, fragment)
        judge("a run is played and explained by keyboard", keyboard, page)
        judge("the load is changed by keyboard", curve_by_keyboard, page)
        judge("a part of a link's load is changed, and the others stay", curve_of_a_link, page)
        judge("the load is drawn in requests a second", load_in_requests_a_second, page)
        judge("the load is drawn with a pointer", curve_by_pointer, page)
        judge("a pointer over the limit asks why", hovering, page)
        judge("a tap on a chart asks why, and a swipe scrolls", touching, page)
        judge("the objective changes during the run", objective_during_the_run, page)
        judge("a link that is wrong is told with all its faults", a_link_that_is_wrong, page)
        for width, scheme, fragment in [
            (360, "light", "story=chain-optional-2x&rival=static-tuned-http1"),
            (360, "dark", "story=own&rival=admission-control-upstream"),
            (768, "light", "story=step"),
            (1280, "dark", "story=own"),
            (1280, "light", "story=fleet-overload"),
        ]:
            judge(f"it fits {width} pixels and can be read, {scheme}: {fragment}", fits, page, width, scheme, fragment)
        # The second is the frame on the first page of the site.
        for width, height in [(360, 740), (958, 736), (768, 1024), (1280, 900)]:
            judge(f"Play and the good answers are in sight, {width} x {height}", first_in_sight, page, width, height)
        judge("with less motion the page begins at the end", less_motion, page)
        judge("it reloads without a network, and shows a new build at once", without_a_network, page, folder)
        judge("a minute of story is played", minute, page)
        judge("the page is small", size, folder)
        judge("nothing is loaded from elsewhere", own_files_only, page)
        judge("nothing is complained of in the console", quiet, page)
        if len(sys.argv) > 4:
            pictures(page, sys.argv[4])
    finally:
        browser.close()
        end(serving)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
