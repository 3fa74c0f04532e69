#!/usr/bin/env python3
"""Takes the pictures of docs/images that README and site show: ci/screenshots.py [--profile NAME] [--only NAME,NAME] [--report FILE]

    report.png      the report of `make demo`, of a story of a minute that is played for it, or of a report that is there (--report)
    page.png        the control service's page, with three Envoys, three policies and an error
    graph.png       the same page with the live service graph, of `make demo-graph`: real traffic, and a real Prometheus
    cli.png         what `tidegate` prints for a policy with errors, for a good one, and for these proxies
    dashboard.png   the dashboard's main panels, drawn from what that Prometheus answers to their queries, over the overloads of
                    that demo. It is not Grafana that draws (ci/dashboard_picture.py)
    playground.png  the playground, which `make playground-build` has built, after an outage

All of it is real: the demo must keep its promises (`--check`), the service, the Envoys and the module are those that were built here.
A headless Chromium draws (ci/chromium.sh).
"""

import argparse
import html
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import dashboard_picture
from browser import Browser
from graph_demo import GraphDemo

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs/images"
# Of every picture. The report has what its first charts show, the page what its tables show.
WIDTH, HEIGHT, REPORT_HEIGHT, PAGE_HEIGHT, GRAPH_HEIGHT, PLAYGROUND_HEIGHT = 1200, 900, 1085, 760, 900, 1400
PATIENCE_SECONDS = 60
# The two overloads of the demo, and some of the usual traffic before them.
DASHBOARD_SECONDS = 40
DASHBOARD_FOOTER = "Queries of the Grafana dashboard, answered by Prometheus. Drawn with uPlot, not by Grafana."
# An outage with a breaker on both sides, and the share of the run that is played.
PLAYGROUND, PLAYGROUND_AT = "story=outage&rival=linkerd", 0.75
POLICIES = {
    "edge.yaml": ("edge", "{cluster: edge}", "300ms", "mode: observe"),
    "checkout.yaml": ("checkout", "{cluster: checkout}", "150ms", "criticality: {header: x-criticality}"),
    "search.yaml": ("search", "{cluster: search}", "80ms", "limit: {max: 0}"),
}
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #1e2430; } pre { margin: 0; padding: 24px 28px; color: #dfe4ee; font: 15px/1.5 "DejaVu Sans Mono", monospace; }
b { color: #7fd1b9; font-weight: normal; }</style><pre>"""


def fail(message):
    sys.exit(f"screenshots.py: error: {message}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def process(command, **options):
    started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def until(what, holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            fail(f"{what}: not within {PATIENCE_SECONDS} s")
        time.sleep(0.1)


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def policy(name, target, latency, more):
    return (
        f"apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {{name: {name}}}\nspec:\n  proxies: [{target}]\n"
        f"  slo: {{latency: {{quantile: 0.99, target: {latency}}}}}\n  {more}\n"
    )


def bootstrap(name, xds):
    """An Envoy of the tutorial's form: its own configuration names no other place than the control service."""
    text = (ROOT / "docs/tutorial.md").read_text()
    text = re.search(r"<!-- file: envoy\.yaml -->\n```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    text = text.replace("{id: edge-1, cluster: edge}", f"{{id: {name}-1, cluster: {name}}}").replace("path: access.log", "path: /dev/null")
    # Its default configuration names the module: without the file Envoy does not start.
    text = text.replace("/etc/envoy/tidegate.wasm", str(ROOT / "dist/tidegate.wasm"))
    ports = {"9901": free_port(), "10000": free_port(), "18000": xds}
    return re.sub(r"(?<=port_value: )\d+", lambda found: str(ports.get(found[0], found[0])), text)


class Stage:
    """The control service with policies, and an Envoy for each, in a folder of their own."""

    def __init__(self, tidegate, folder, stack):
        self.tidegate, self.folder = tidegate, Path(folder)
        (self.folder / "policies").mkdir()
        for file, parts in POLICIES.items():
            (self.folder / "policies" / file).write_text(policy(*parts))
        xds, http, health = free_port(), free_port(), free_port()
        listeners = {"TIDEGATE_XDS_LISTEN": xds, "TIDEGATE_HTTP_LISTEN": http, "TIDEGATE_HEALTH_LISTEN": health}
        self.url = f"http://127.0.0.1:{http}"
        self.environment = {**os.environ, **{name: f"127.0.0.1:{port}" for name, port in listeners.items()}, "TIDEGATE_SERVER": self.url}
        serve = [tidegate, "serve", "--policies", "policies", "--module", str(ROOT / "dist/tidegate.wasm")]
        stack.enter_context(process(serve, cwd=self.folder, env=self.environment))
        until("the control service is ready", lambda: answers(f"http://127.0.0.1:{health}/readyz"))
        for number, name in enumerate(parts[0] for parts in POLICIES.values()):
            file = self.folder / f"{name}.yaml"
            file.write_text(bootstrap(name, xds))
            # Of one machine: they would share memory otherwise.
            envoy = [str(ROOT / ".tools/bin/envoy"), "-c", str(file), "--use-dynamic-base-id", "--concurrency", "1"]
            stack.enter_context(process(envoy, cwd=self.folder))
        until("all proxies run their configuration", lambda: "current: 3" in self.told("status"))

    def told(self, *arguments):
        command = [self.tidegate, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


def chromium():
    return os.environ.get("TIDEGATE_CHROMIUM") or str(ROOT / ".tools/bin/chromium")


def show(browser, url, height):
    browser.look(WIDTH, height)
    browser.open(url)
    browser.shows("document.readyState === 'complete' && location.href !== 'about:blank'")


def report(browser, demo, out, given):
    if not given:
        subprocess.run([demo, "--seconds", "60", "--check", "--out", str(out)], cwd=ROOT, check=True)
    show(browser, (Path(given).resolve() if given else out / "report.html").as_uri(), HEIGHT)
    browser.picture(IMAGES / "report.png", height=REPORT_HEIGHT)


def page(browser, stage):
    show(browser, stage.url + "/", HEIGHT)
    browser.shows("document.body.innerText.includes('checkout-1')")
    browser.picture(IMAGES / "page.png", height=PAGE_HEIGHT)


def graph(browser, demo, wanted, folder):
    """The page of the demo, once it says that it stays, and what its Prometheus knows at the end of the last overload."""
    with GraphDemo(demo, ROOT) as running:
        metrics = running.until("the metrics:")
        url = running.until("live:")
        running.until("mode enforce:")
        if "dashboard" in wanted:
            path = Path(folder) / "dashboard.html"
            path.write_text(dashboard_picture.page(metrics, DASHBOARD_SECONDS, DASHBOARD_FOOTER))
        running.until("the page remains")
        if "graph" in wanted:
            show(browser, url, HEIGHT)
            browser.shows("document.querySelectorAll('#picture .call path').length > 3")
            browser.picture(IMAGES / "graph.png", height=GRAPH_HEIGHT)
    if "dashboard" in wanted:
        show(browser, path.as_uri(), HEIGHT)
        browser.shows("document.body.dataset.state === 'ready'")
        browser.picture(IMAGES / "dashboard.png", height=2000)


def command_line(browser, stage, folder):
    shown = []
    for command in (["validate", "policies/"], ["validate", "policies/edge.yaml"], ["diff", "policies/edge.yaml", "proposed.yaml"], ["status"]):
        shown.append(f"<b>$ tidegate {' '.join(command)}</b>\n{html.escape(stage.told(*command).strip())}")
    path = Path(folder) / "terminal.html"
    path.write_text(TERMINAL + "\n\n".join(shown) + "</pre>")
    show(browser, path.as_uri(), 400)
    browser.picture(IMAGES / "cli.png", height=2000)


def playground(browser, stack):
    folder = ROOT / "out/playground"
    port = free_port()
    stack.enter_context(process([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(port)]))
    url = f"http://127.0.0.1:{port}/index.html"
    until("the playground is served", lambda: answers(url))
    show(browser, f"{url}#{PLAYGROUND}", HEIGHT)
    browser.shows("['ready', 'failed'].includes(document.body.dataset.state)")
    # As a person moves it: the handlers of the page follow.
    browser.value(
        "(scrub => { scrub.value = scrub.max * %s; scrub.dispatchEvent(new Event('input', {bubbles: true})); })"
        "(document.getElementById('scrub'))" % PLAYGROUND_AT
    )
    browser.value("new Promise(requestAnimationFrame)")
    browser.picture(IMAGES / "playground.png", height=PLAYGROUND_HEIGHT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", default="release")
    parser.add_argument("--only", default="report,page,graph,dashboard,cli,playground")
    parser.add_argument("--report")
    options = parser.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / {"dev": "debug"}.get(options.profile, options.profile)
    wanted = set(options.only.split(","))
    with tempfile.TemporaryDirectory(prefix="tidegate-screenshots-") as folder, ExitStack() as stack, closing(Browser(chromium())) as browser:
        if wanted & {"page", "cli"}:
            stage = Stage(str(target / "tidegate"), folder, stack)
            proposed = POLICIES["edge.yaml"][:2] + ("250ms", "mode: enforce")
            (Path(folder) / "proposed.yaml").write_text(policy(*proposed))
        if "page" in wanted:
            page(browser, stage)
        if "cli" in wanted:
            command_line(browser, stage, folder)
        if wanted & {"graph", "dashboard"}:
            graph(browser, str(target / "examples/demo_graph"), wanted, folder)
        if "playground" in wanted:
            playground(browser, stack)
        if "report" in wanted:
            report(browser, str(target / "demo"), Path(folder) / "demo", options.report)
    for path in sorted(IMAGES.glob("*.png")):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB", file=sys.stderr)


if __name__ == "__main__":
    main()
