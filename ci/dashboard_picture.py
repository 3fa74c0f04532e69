"""A page with the main panels of the dashboard, drawn from a Prometheus's answers to their queries.

No Grafana is needed, so it is no picture of Grafana: titles, queries, units and legends are those of dashboards/grafana/tidegate.json,
and uPlot draws them, as it does in the playground.
"""

import json
import re
import time
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = ROOT / "dashboards/grafana/tidegate.json"
VENDOR = ROOT / "playground/web/vendor"
# Those that need neither recording rules nor the control service's metrics.
FIGURES = ["Requests", "Shed", "Breakers not closed"]
CHARTS = [
    "Shed, by reason", "Share shed, by upstream", "Would have been shed, by reason", "In flight against the limit",
    "Latency against the baseline", "Breaker states", "Outcomes", "Proxies, by module and mode",
]
# Grafana's own choice for so short a time, where a target is scraped each second.
RATE_INTERVAL, STEP_SECONDS = "5s", 1

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Tidegate</title>
<style>%(style)s
:root { color-scheme: light; } * { box-sizing: border-box; }
body { margin: 0; padding: 16px; background: #f4f5f5; color: #24292e; font: 14px system-ui, sans-serif; width: 1200px; }
main { display: grid; grid-template-columns: repeat(6, 1fr); gap: 10px; }
section { background: #fff; border: 1px solid #e0e2e5; border-radius: 3px; padding: 8px 10px; grid-column: span 3; }
section.figure { grid-column: span 2; }
h2 { font-size: 14px; font-weight: 600; margin: 0 0 4px; }
section.figure p { font-size: 30px; margin: 2px 0 4px; color: #1a7f37; }
footer { color: #59636e; margin-top: 10px; }
.u-legend { font-size: 12px; text-align: left; } .u-legend th { font-weight: 400; }
</style><main></main><footer>%(footer)s</footer>
<script>%(script)s</script>
<script>
const panels = %(panels)s;
const colors = ["#56a64b", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#8f3bb8", "#37872d", "#806eb7"];
const number = value => Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
const units = {
  percentunit: value => number(value * 100) + " %%", reqps: value => number(value) + " req/s", "µs": value => number(value / 1000) + " ms",
};
const shown = (unit, value) => (units[unit] ?? number)(value);
for (const panel of panels) {
  const section = document.createElement("section");
  const title = document.createElement("h2");
  title.textContent = panel.title;
  section.append(title);
  document.querySelector("main").append(section);
  if (panel.figure) {
    section.className = "figure";
    const figure = document.createElement("p");
    figure.textContent = panel.value === null ? panel.none : shown(panel.unit, panel.value);
    section.append(figure);
    continue;
  }
  const names = panel.states ? splits => splits.map(split => panel.states[split] ?? "") : splits => splits.map(split => shown(panel.unit, split));
  new uPlot({
    width: section.clientWidth - 20, height: 170, cursor: { show: false }, legend: { live: false },
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, panel.states ? 2.2 : Math.max(high * 1.08, 1e-9)] } },
    axes: [
      { values: (_, splits) => splits.map(split => split + " s"), grid: { stroke: "#eceef0" } },
      { values: (_, splits) => names(splits), size: 80, grid: { stroke: "#eceef0" }, splits: panel.states ? () => [0, 1, 2] : undefined },
    ],
    series: [{ label: "time" }, ...panel.series.map((one, index) => ({
      label: one.name, stroke: colors[index %% colors.length], width: 2, points: { show: false },
      paths: panel.states ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }))],
  }, [panel.at, ...panel.series.map(one => one.values)], section);
}
document.body.dataset.state = "ready";
</script></html>
"""


def asked(url, path, **parameters):
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as reply:
        return json.load(reply)["data"]["result"]


def query(text):
    for variable, value in {"$__rate_interval": RATE_INTERVAL, "$upstream": ".+", "$instance": ".+"}.items():
        text = text.replace(variable, value)
    assert "$" not in text, f"a variable that this script does not know: {text}"
    return text


def legend(form, labels):
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), form).strip() or "value"


def figure(url, panel, at):
    found = asked(url, "query", query=query(panel["targets"][0]["expr"]), time=at)
    none = panel["fieldConfig"]["defaults"].get("noValue", "No data")
    return {"figure": True, "value": float(found[0]["value"][1]) if found else None, "none": none}


def chart(url, panel, begin, end):
    moments = [begin + offset for offset in range(0, end - begin + 1, STEP_SECONDS)]
    states = None
    if panel["type"] == "state-timeline":
        states = {number: it["text"] for number, it in panel["fieldConfig"]["defaults"]["mappings"][0]["options"].items()}
    series = []
    for target in panel["targets"]:
        for found in asked(url, "query_range", query=query(target["expr"]), start=begin, end=end, step=STEP_SECONDS):
            # NaN is what a share of nothing is: no value, as in Grafana.
            known = {round(at): float(value) for at, value in found["values"] if value != "NaN"}
            values = [known.get(moment) for moment in moments]
            # Of a rate, what is never above 0 would only lengthen the legend.
            if states or any(values):
                series.append({"name": legend(target["legendFormat"], found["metric"]), "values": values})
    return {"at": [moment - begin for moment in moments], "series": series, "states": states}


def page(url, seconds, footer):
    """The page's text: the last `seconds`, until now. Fails where a panel is no longer in the dashboard, or all have no data."""
    panels = {panel["title"]: panel for panel in json.loads(DASHBOARD.read_text())["panels"]}
    end = int(time.time())
    begin = end - seconds
    drawn = []
    for title in FIGURES + CHARTS:
        panel = panels[title]
        more = figure(url, panel, end) if title in FIGURES else chart(url, panel, begin, end)
        drawn.append({"title": title, "unit": panel["fieldConfig"]["defaults"]["unit"], **more})
    assert any(panel.get("series") for panel in drawn), f"no panel has data in {url}"
    parts = {
        "style": (VENDOR / "uPlot.min.css").read_text(), "script": (VENDOR / "uPlot.iife.min.js").read_text(),
        "panels": json.dumps(drawn).replace("</", "<\\/"), "footer": footer,
    }
    return PAGE % parts
