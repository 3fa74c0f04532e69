#!/usr/bin/env python3
"""Checks everything that `make demo-graph` promises, on its page in a headless Chromium and in the files that it writes.

demo_graph_test.py PROGRAM TIDEGATE CHROMIUM [PICTURE]: the built demo, the command, the browser, and where to keep a picture of the page,
if one is wanted. Takes two minutes. Ends with `N passed, N failed`.
"""

import json
import subprocess
import sys
import traceback
from contextlib import closing
from pathlib import Path

from browser import Browser
from graph_demo import GraphDemo

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out/demo-graph"
# The calls, as caller and upstream. Each request from outside makes each of them once.
CALLS = {("gateway", "web"), ("web", "cart"), ("web", "offers"), ("cart", "stock")}
RATE = 50
CLICK = """[...document.querySelectorAll('#picture .service')].find(made => made.textContent.includes('%s'))
    .dispatchEvent(new MouseEvent('click', {bubbles: true}))"""


def told(name):
    return json.loads((OUT / name).read_text())


class Checks:
    """What is true of the demo; each has a name that is a fact."""

    def __init__(self, demo, browser, tidegate):
        self.demo, self.browser, self.tidegate = demo, browser, tidegate

    def the_page_draws_every_call(self):
        self.browser.shows(f"document.querySelectorAll('#picture .call path').length === {len(CALLS)}")
        services = {name for call in CALLS for name in call}
        drawn = self.browser.value("[...document.querySelectorAll('#picture .service text')].map(made => made.textContent.replace('! ', ''))")
        assert set(drawn) == services, drawn

    def the_page_recommends_an_objective_for_a_chosen_service(self):
        self.browser.value(CLICK % "offers")
        self.browser.shows("document.querySelector('#service').innerText.includes('within')")
        text = self.browser.value("document.querySelector('#service').innerText")
        assert "offers" in text and "Recommended" in text, text

    def the_graph_has_the_calls_and_their_rates(self):
        edges = told("graph.json")["edges"]
        found = {tuple(edge[end].removeprefix("service:/") for end in ("caller", "upstream")): edge for edge in edges}
        assert set(found) == CALLS, set(found)
        for call, edge in found.items():
            assert abs(edge["rate"] - RATE) < 0.2 * RATE, (call, edge["rate"])
            assert edge["success"] > 0.99, (call, edge["success"])

    def every_upstream_has_a_recommended_objective(self):
        advice = {one["upstream"]: one for one in told("recommendations.json")["upstreams"]}
        assert set(advice) == {upstream for _, upstream in CALLS}, set(advice)
        for one in advice.values():
            assert one["slo"]["latency"]["target"].endswith("ms"), one
            # What was observed, with the margin.
            assert 1000 * one["evidence"]["observedSeconds"] < float(one["slo"]["latency"]["target"][:-2]), one

    def the_recommended_policies_are_valid_and_observe(self):
        done = subprocess.run([self.tidegate, "validate", OUT / "policies.yaml"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        modes = [line.split(":")[1].strip() for line in (OUT / "policies.yaml").read_text().splitlines() if line.strip().startswith("mode:")]
        assert modes and set(modes) == {"observe"}, modes

    def the_policy_in_force_is_on_the_page(self):
        self.browser.value(CLICK % "offers")
        self.browser.shows("document.querySelector('#service').innerText.includes('recommended, upstreams[')")
        self.browser.shows("document.querySelector('#policies').innerText.includes('enforce')")
        self.browser.shows("document.querySelector('#count-current').innerText === '3'")
        assert self.browser.value("document.querySelector('#problems').hidden"), "the page names problems"

    def the_load_was_twice_the_capacity_both_times(self):
        for result in told("result.json")["results"]:
            assert 0.9 * told("result.json")["rate"] * 10 < result["sent"], result

    def without_the_policy_most_answers_are_late_and_with_it_most_are_good(self):
        share = {result["mode"]: result["share"] for result in told("result.json")["results"]}
        assert share["observe"] < 0.5 and share["enforce"] > 0.8, share

    def the_page_has_no_complaint_and_loads_nothing_from_elsewhere(self):
        assert not self.browser.complaints, self.browser.complaints
        elsewhere = [url for url in self.browser.requests if not url.startswith(("http://127.0.0.1:", "data:", "about:"))]
        assert not elsewhere, elsewhere

    def it_ends_at_once_and_with_success(self):
        assert self.demo.end() == 0, self.demo.lines


def main():
    program, tidegate, chromium = sys.argv[1:4]
    passed = failed = 0
    # Results of an earlier run must not pass for those of this one.
    for old in OUT.glob("*"):
        old.unlink()
    with closing(Browser(chromium)) as browser, GraphDemo(program, ROOT) as demo:
        checks = Checks(demo, browser, tidegate)

        def judge(*names):
            nonlocal passed, failed
            for check in names:
                name = check.__name__.replace("_", " ")
                try:
                    check()
                except Exception:  # noqa: BLE001: one that fails must not hide the others
                    failed += 1
                    print(f"FAILED {name}\n{traceback.format_exc()}", flush=True)
                else:
                    passed += 1
                    print(f"ok     {name}", flush=True)

        browser.look(1280)
        browser.open(demo.until("live:"))
        demo.until("2. ")
        judge(checks.the_page_draws_every_call, checks.the_page_recommends_an_objective_for_a_chosen_service)
        demo.until("the page remains")
        judge(
            checks.the_graph_has_the_calls_and_their_rates,
            checks.every_upstream_has_a_recommended_objective,
            checks.the_recommended_policies_are_valid_and_observe,
            checks.the_policy_in_force_is_on_the_page,
            checks.the_load_was_twice_the_capacity_both_times,
            checks.without_the_policy_most_answers_are_late_and_with_it_most_are_good,
            checks.the_page_has_no_complaint_and_loads_nothing_from_elsewhere,
        )
        if len(sys.argv) > 4:
            browser.picture(sys.argv[4], whole=True)
        judge(checks.it_ends_at_once_and_with_success)
        print("\n".join(demo.lines))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
