// The objective, which may change while the run is played.

import { made } from "./made.js";

const part = id => document.getElementById(id);

// Usual objectives, in milliseconds.
const USUAL = [5, 10, 15, 20, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000, 10_000];
// Changes are made at tenths of a second.
const TENTHS = 10;

export class Objective {
  #choices = USUAL;
  #run = null;
  #at = 0;
  #isUnderWay = false;

  // `changed` is called with a latency and the second from which it applies, or null for the whole run; `pushed` with all changes.
  constructor([least, most], changed, pushed) {
    this.bounds = [least, most];
    this.pushed = pushed;
    const range = part("objective");
    range.addEventListener("input", () => this.#say());
    range.addEventListener("change", () => {
      const at = Math.ceil(this.#at * TENTHS) / TENTHS;
      changed(this.#choices[range.value], this.#isUnderWay ? at : null);
    });
  }

  show(run, at) {
    this.#run = run;
    const all = [...USUAL, run.objective_ms, ...run.pushes.map(push => push.latency_ms)];
    this.#choices = [...new Set(all)].sort((a, b) => a - b).filter(ms => ms >= this.bounds[0] && ms <= this.bounds[1]);
    part("objective").max = this.#choices.length - 1;
    const remove = push => made("button", {
      type: "button",
      textContent: `from ${push.at_s} s: ${push.latency_ms} ms ✕`,
      ariaLabel: `Undo the change to ${push.latency_ms} ms at second ${push.at_s}`,
      onclick: () => this.pushed(run.pushes.filter(other => other !== push)),
    });
    part("pushes").replaceChildren(...run.pushes.map(push => made("li", {}, remove(push))));
    this.at(at, run.duration_s);
  }

  // The playhead moved.
  at(at, duration) {
    this.#at = at;
    this.#isUnderWay = at > 0 && at < duration - 0.1;
    const said = this.#isUnderWay ? `a change applies from ${(Math.ceil(at * TENTHS) / TENTHS).toFixed(1)} s on` : "a change applies to the whole run";
    part("objective-hint").textContent = said;
    if (document.activeElement === part("objective") && part("objective").matches(":active")) return;
    const now = this.#run.pushes.findLast(push => push.at_s <= at)?.latency_ms ?? this.#run.objective_ms;
    part("objective").value = this.#choices.indexOf(now);
    this.#say();
  }

  #say() {
    const latency = this.#choices[part("objective").value];
    const text = `${this.#run.quantile * 100} % within ${latency} ms`;
    part("objective-said").textContent = text;
    part("objective").setAttribute("aria-valuetext", text);
  }
}
