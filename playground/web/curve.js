// The load curve, drawn by pointer or changed by keyboard: parts of equal length, each with a level.

import { themed } from "./theme.js";

// Parts of a new curve, and the fewest that are drawn on.
const PARTS = 30;
// The scale ends at this multiple of the capacity, or at the highest level if that is higher.
const TOP = 4;

// Units of a level: the step of a key, of a page key, and the words behind a level.
const UNITS = {
  capacity: { step: 0.1, page: 1, words: "times the capacity" },
  rps: { step: 10, page: 100, words: "requests a second" },
};

export const SHAPES = {
  steady: part => 0.7,
  step: part => (part < 10 || part >= 20 ? 0.7 : 3),
  spikes: part => (part % 10 >= 5 && part % 10 < 7 ? 4 : 0.6),
  ramp: part => 0.2 + (part * 2.8) / (PARTS - 1),
  wave: part => 1 + 0.8 * Math.sin((part / PARTS) * 4 * Math.PI),
};

const rounded = level => Math.round(level * 10) / 10;
const shape = name => Array.from({ length: PARTS }, (_, part) => rounded(SHAPES[name](part)));

// Levels in one unit as levels in another.
export function converted(levels, from, to, { capacity, most }) {
  const factor = from === to ? 1 : to === "rps" ? capacity : 1 / capacity;
  const kept = level => Math.min(most[to], to === "rps" ? Math.round(level) : rounded(level));
  return levels.map(level => kept(level * factor));
}

// The text of levels in a link: 0.7*10,3.
export function encoded(levels) {
  const groups = [];
  for (const level of levels) {
    const last = groups.at(-1);
    if (last?.level === level) last.count += 1;
    else groups.push({ level, count: 1 });
  }
  return groups.map(({ level, count }) => (count > 1 ? `${level}*${count}` : `${level}`)).join(",");
}

export class Curve {
  #levels = shape("steady");
  #chosen = 0;
  #seconds = 60;
  #capacity = 400;
  #unit = "capacity";
  #drawing = null;

  // `most` has the greatest level of each unit. `changed` is called with the levels after each stroke or key.
  constructor(canvas, most, changed) {
    this.canvas = canvas;
    this.most = most;
    this.changed = changed;
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      this.#drawing = this.#place(event);
      this.#draw(this.#drawing, this.#drawing);
    });
    canvas.addEventListener("pointermove", event => {
      if (!this.#drawing) return;
      const to = this.#place(event);
      this.#draw(this.#drawing, to);
      this.#drawing = to;
    });
    const done = () => {
      if (this.#drawing) this.changed(this.#levels);
      this.#drawing = null;
    };
    canvas.addEventListener("pointerup", done);
    canvas.addEventListener("pointercancel", done);
    canvas.addEventListener("keydown", event => this.#key(event));
    canvas.addEventListener("focus", () => this.paint());
    canvas.addEventListener("blur", () => this.paint());
    new ResizeObserver(() => this.paint()).observe(canvas);
  }

  // A shape by its name, in the unit that is shown.
  shape(name) {
    return converted(shape(name), "capacity", this.#unit, { capacity: this.#capacity, most: this.most });
  }

  show(levels, unit, seconds, capacity) {
    this.#unit = unit;
    this.#seconds = seconds;
    this.#capacity = capacity;
    if (!this.#drawing) {
      // A curve with few parts is drawn on in smaller ones: each becomes several of the same level, so that nothing is lost.
      const each = Math.ceil(PARTS / levels.length);
      this.#levels = levels.flatMap(level => Array(each).fill(level));
      this.#chosen = Math.min(this.#chosen, this.#parts - 1);
    }
    this.paint();
  }

  get #parts() {
    return this.#levels.length;
  }

  // The level at which the service is just not overloaded.
  get #full() {
    return this.#unit === "rps" ? this.#capacity : 1;
  }

  // To the step of a key, and within the range of the unit.
  #valid(level) {
    const { step } = UNITS[this.#unit];
    return Math.min(this.most[this.#unit], Math.max(0, rounded(Math.round(level / step) * step)));
  }

  #top() {
    const top = Math.max(TOP, Math.ceil(Math.max(...this.#levels) / this.#full)) * this.#full;
    return Math.min(top, this.most[this.#unit]);
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    const part = Math.floor(((event.clientX - box.left) / box.width) * this.#parts);
    const level = (1 - (event.clientY - box.top) / box.height) * this.#top();
    return { part: Math.min(this.#parts - 1, Math.max(0, part)), level: this.#valid(level) };
  }

  // A quick stroke skips parts: interpolate between its ends.
  #draw(from, to) {
    const length = Math.max(1, Math.abs(to.part - from.part));
    for (let step = 0; step <= length; step += 1) {
      const part = from.part + Math.round(((to.part - from.part) * step) / length);
      this.#levels[part] = this.#valid(from.level + ((to.level - from.level) * step) / length);
    }
    this.#chosen = to.part;
    this.paint();
  }

  #key(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -this.#parts, End: this.#parts }[event.key];
    const { step, page } = UNITS[this.#unit];
    const change = { ArrowUp: step, ArrowDown: -step, PageUp: page, PageDown: -page }[event.key];
    if (move === undefined && change === undefined) return;
    event.preventDefault();
    this.#chosen = Math.min(this.#parts - 1, Math.max(0, this.#chosen + (move ?? 0)));
    if (change !== undefined) {
      this.#levels[this.#chosen] = this.#valid(this.#levels[this.#chosen] + change);
      this.changed(this.#levels);
    }
    this.paint();
  }

  paint() {
    const { canvas } = this;
    const { width, height } = canvas.getBoundingClientRect();
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = themed("--ground");
    pen.fillRect(0, 0, width, height);
    const y = level => height - (level / this.#top()) * (height - 6);
    const each = width / this.#parts;
    this.#levels.forEach((level, part) => {
      pen.globalAlpha = part === this.#chosen && document.activeElement === canvas ? 1 : 0.65;
      pen.fillStyle = themed("--tidegate");
      pen.fillRect(part * each + 0.5, y(level), each - 1, height - y(level));
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = themed("--faint");
    pen.fillStyle = themed("--ink");
    pen.setLineDash([4, 4]);
    pen.beginPath();
    pen.moveTo(0, y(this.#full));
    pen.lineTo(width, y(this.#full));
    pen.stroke();
    pen.font = "11px system-ui, sans-serif";
    pen.fillText(`capacity: ${Math.round(this.#capacity)}/s`, 4, y(this.#full) - 4);
    const level = this.#levels[this.#chosen];
    const at = ((this.#chosen * this.#seconds) / this.#parts).toFixed(0);
    canvas.setAttribute("aria-label", `Load over time, in ${this.#unit === "rps" ? "requests a second" : "multiples of the capacity"}`);
    canvas.setAttribute("aria-valuemax", this.most[this.#unit]);
    canvas.setAttribute("aria-valuenow", level);
    canvas.setAttribute("aria-valuetext", `from second ${at}: ${level} ${UNITS[this.#unit].words}`);
  }
}
