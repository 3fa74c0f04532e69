// The charts. All share one time, one cursor, and the run's whole range, so that nothing jumps while it plays.

import { themed } from "./theme.js";

const TIDEGATE = "--tidegate";
const RIVAL = "--rival";
// A rival's line may be this many times as high as Tidegate's before the chart of limits cuts it off.
const MOST_OVER = 3;
// A finger that moves by less than this, in pixels, taps.
const TAP = 10;
// Where plots begin and end, in pixels from the sides.
export const LEFT = 48;
export const RIGHT = 16;

// The charts: place on the page, table of the run, and lines as [contender, column, style].
const CHARTS = [
  { place: "good", height: 210, of: "windows", lines: [
    ["tidegate", "possible", { stroke: "--possible", fill: true }],
    ["plan", "offered", { stroke: "--faint", dash: [2, 4], width: 1 }],
    ["rival", "good", { stroke: RIVAL, dash: [8, 3] }],
    ["tidegate", "good", { stroke: TIDEGATE }],
  ] },
  { place: "limit", height: 210, of: "samples", capped: true, lines: [
    ["rival", "in_flight", { stroke: RIVAL, width: 1, faded: true }],
    ["tidegate", "in_flight", { stroke: TIDEGATE, width: 1, faded: true }],
    ["rival", "limit", { stroke: RIVAL, dash: [8, 3], stepped: true }],
    ["tidegate", "limit", { stroke: TIDEGATE, stepped: true }],
  ] },
  { place: "latency", height: 150, of: "windows", lines: [
    ["plan", "objective", { stroke: "--objective", dash: [3, 3], width: 1.5, stepped: true }],
    ["rival", "p99_ms", { stroke: RIVAL, dash: [8, 3] }],
    ["tidegate", "p99_ms", { stroke: TIDEGATE }],
  ] },
  { place: "queue", height: 150, of: "samples", lines: pair("waiting") },
  { place: "shed", height: 150, of: "windows", lines: pair("shed") },
  { place: "failed", height: 150, of: "windows", lines: pair("failed") },
];

function pair(column) {
  return [["rival", column, { stroke: RIVAL, dash: [8, 3] }], ["tidegate", column, { stroke: TIDEGATE }]];
}

const highest = column => (column ?? []).reduce((most, value) => Math.max(most, value ?? 0), 0);

export class Charts {
  #charts = [];
  #data = null;

  // `pointed` is called with the time under the pointer, or null when the pointer leaves, and with whether a finger pointed there.
  constructor(pointed) {
    this.pointed = pointed;
    for (const kind of CHARTS) this.#charts.push(this.#chart(kind));
    const resized = new ResizeObserver(entries => {
      for (const { target, contentRect } of entries) {
        const found = this.#charts.find(chart => chart.element === target);
        if (contentRect.width > 0) found.plot.setSize({ width: contentRect.width, height: found.kind.height });
      }
    });
    for (const { element } of this.#charts) resized.observe(element);
  }

  #chart(kind) {
    const element = document.getElementById(`chart-${kind.place}`);
    const chart = { kind, element, top: 1, columns: null };
    // Its figures are in the table of the moment.
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `Chart: ${element.parentElement.querySelector("h2").firstChild.data.trim()}`);
    const series = kind.lines.map(([, , look]) => ({
      stroke: () => faded(themed(look.stroke), look.faded ? 0.55 : 1),
      fill: look.fill ? () => faded(themed(look.stroke), 0.22) : undefined,
      width: look.width ?? 2,
      dash: look.dash,
      points: { show: false },
      spanGaps: false,
      paths: look.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }));
    const axis = {
      stroke: () => themed("--faint"),
      grid: { stroke: () => themed("--grid"), width: 1 },
      ticks: { show: false },
      font: "12px system-ui, sans-serif",
    };
    chart.plot = new uPlot({
      width: element.clientWidth || 300,
      height: kind.height,
      padding: [8, RIGHT, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: "run", setSeries: false }, y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, range: () => [0, this.#data?.duration ?? 30] },
        y: { range: () => [0, chart.top] },
      },
      axes: [
        { ...axis, size: 30, values: (_, splits) => splits.map(split => `${split} s`) },
        { ...axis, size: LEFT, values: (_, splits) => splits.map(short) },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [plot => this.#moved(plot)] },
    }, [[], ...kind.lines.map(() => [])], element);
    this.#touched(chart.plot.over);
    return chart;
  }

  #moved(plot) {
    // All charts follow the cursor of the chart under the pointer.
    if (!plot.cursor.event) return;
    const { left } = plot.cursor;
    this.pointed(left === undefined || left < 0 ? null : Math.max(0, plot.posToVal(left, "x")), false);
  }

  // uPlot knows only the mouse. A tap, or a finger that moves along a chart, points to a moment that stays. A finger that moves up
  // or down scrolls the page.
  #touched(over) {
    const isFinger = event => event.pointerType === "touch";
    const point = event => {
      const { left, width } = over.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
      this.mark(share * (this.#data?.duration ?? 0));
      this.pointed(share * (this.#data?.duration ?? 0), true);
    };
    let began = null;
    over.addEventListener("pointerdown", event => {
      if (!isFinger(event)) return;
      began = event;
      // Otherwise the browser sends the events of a mouse as well.
      event.preventDefault();
    });
    // What a touch does, by how far it has moved: "tap", "along" the chart, or "scroll" the page.
    const kind = event => {
      const [x, y] = [Math.abs(event.clientX - began.clientX), Math.abs(event.clientY - began.clientY)];
      if (Math.max(x, y) < TAP) return "tap";
      return x > y ? "along" : "scroll";
    };
    over.addEventListener("pointermove", event => began && isFinger(event) && kind(event) === "along" && point(event));
    over.addEventListener("pointerup", event => {
      if (!began || !isFinger(event) || kind(event) === "scroll") return;
      point(event);
      // The explanation at the edge of the screen must not cover what was tapped.
      over.scrollIntoView({ block: "nearest" });
    });
  }

  // Draws the cursor of all charts at a time, or nowhere.
  mark(at) {
    for (const { plot } of this.#charts) plot.setCursor({ left: at === null ? -10 : plot.valToPos(at, "x"), top: 0 }, false, false);
  }

  // Takes a new run. Returns the highest value that the chart of limits cuts off, if any.
  take(run) {
    this.#data = run;
    let beyond = null;
    for (const chart of this.#charts) {
      const { of, lines, capped } = chart.kind;
      const at = run.tidegate[of].at;
      // The planned load is known before the run is played.
      chart.columns = [at, ...lines.map(([whose, column]) =>
        whose === "plan" ? at.map(run.plan[column]) : run[whose][of][column])];
      const most = whose => Math.max(...lines.map((line, index) => (line[0] === whose ? highest(chart.columns[index + 1]) : 0)));
      const [ours, theirs] = [Math.max(most("tidegate"), most("plan")), most("rival")];
      const top = capped && ours > 0 ? Math.max(ours, Math.min(theirs, ours * MOST_OVER)) : Math.max(ours, theirs);
      if (capped && theirs > top) beyond = theirs;
      chart.top = Math.max(1, top * 1.08);
    }
    return beyond;
  }

  // Shows the run up to a time.
  show(until) {
    if (!this.#data) return;
    for (const { plot, columns, kind } of this.#charts) {
      const end = columns[0].findIndex(at => at > until);
      const shown = end < 0 ? columns[0].length : end;
      const [at, ...lines] = columns;
      const played = lines.map((line, index) =>
        kind.lines[index][0] === "plan" ? line : [...line.slice(0, shown), ...Array(at.length - shown).fill(null)]);
      plot.setData([at, ...played], true);
    }
  }

  repaint() {
    for (const { plot } of this.#charts) plot.redraw(false, true);
  }
}

const faded = (color, alpha) => (alpha === 1 ? color : color.replace(/^rgba?\(([^)]*)\)$/, (_, parts) => `rgba(${parts.split(",").slice(0, 3).join(",")}, ${alpha})`));

const short = value => (value >= 10_000 ? `${value / 1000}k` : `${value}`);
