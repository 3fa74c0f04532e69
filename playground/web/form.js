// The settings: turns facts into controls, and controls into a fragment. Rust defines the valid values.

import { Curve, SHAPES, converted, encoded } from "./curve.js";
import { made, option } from "./made.js";

const part = id => document.getElementById(id);

// Stories whose names begin alike are grouped.
const GROUPS = { adversary: "Adversaries", chain: "Chains of services", fleet: "Many proxies", unshared: "Workers that count alone" };
const OTHERS = "Stories";

export class Form {
  #facts;
  #curve;
  #controls = new Map();
  #run = null;

  // `changed` is called with a new fragment.
  constructor(facts, changed) {
    this.#facts = facts;
    this.changed = changed;
    this.#curve = new Curve(part("curve"), facts.most_levels, levels => this.#say({ load: encoded(levels) }));
    const story = part("story");
    story.append(option(facts.own, "Your own"));
    const groups = new Map();
    for (const { name, title } of facts.stories) {
      const group = GROUPS[name.split("-")[0]] ?? OTHERS;
      if (!groups.has(group)) groups.set(group, made("optgroup", { label: group }));
      groups.get(group).append(option(name, title));
    }
    groups.get(OTHERS) && story.append(groups.get(OTHERS));
    for (const [name, group] of groups) if (name !== OTHERS) story.append(group);
    part("rival").append(...facts.rivals.map(({ name, title }) => option(name, title)));
    story.addEventListener("change", () => this.#tell({ story: story.value, rival: this.#run?.rival }));
    part("rival").addEventListener("change", event => this.#say({ rival: event.target.value }));
    part("seed").addEventListener("change", event => this.#say({ seed: event.target.value.trim() }));
    part("settings").addEventListener("submit", event => event.preventDefault());
    for (const name of Object.keys(SHAPES)) {
      const button = made("button", { type: "button", textContent: name });
      button.addEventListener("click", () => this.#say({ load: encoded(this.#curve.shape(name)) }));
      part("shapes").append(button);
    }
    this.#build();
  }

  #build() {
    const groups = new Map();
    for (const field of this.#facts.fields) {
      if (!groups.has(field.group)) {
        const group = made("details", {}, made("summary", { textContent: field.group }));
        // On a phone the charts are far below the settings.
        group.open = (field.group === "Load" || field.group === "Service") && matchMedia("(min-width: 60rem)").matches;
        groups.set(field.group, group);
        part("fields").append(group);
      }
      groups.get(field.group).append(this.#field(field));
    }
  }

  #field(field) {
    const id = `field-${field.key}`;
    const label = made("label", { htmlFor: id, textContent: field.label });
    if (field.kind === "choice") {
      const select = made("select", { id }, ...field.options.map(([name, words]) => option(name, words)));
      select.addEventListener("change", () => this.#say({ [field.key]: select.value, ...(field.key === "unit" && this.#load(select.value)) }));
      this.#controls.set(field.key, value => (select.value = value));
      return made("div", { className: "field" }, label, select);
    }
    const said = made("output", { htmlFor: id });
    const { min, max, step } = field;
    const range = made("input", { id, type: "range", min, max, step });
    const tell = () => {
      said.textContent = `${range.value} ${field.unit}`.trim();
      range.setAttribute("aria-valuetext", said.textContent);
    };
    range.addEventListener("input", tell);
    range.addEventListener("change", () => this.#say({ [field.key]: range.value }));
    this.#controls.set(field.key, value => {
      range.value = value;
      tell();
    });
    return made("div", { className: "field" }, label, said, range);
  }

  // The same load in another unit.
  #load(unit) {
    const { load, values, capacity } = this.#run;
    return { load: encoded(converted(load, values.unit, unit, { capacity, most: this.#facts.most_levels })) };
  }

  // The same run with some settings changed; an empty value resets a setting.
  #say(changes) {
    const said = Object.fromEntries(new URLSearchParams(this.#run?.fragment ?? ""));
    this.#tell({ ...said, ...changes });
  }

  #tell(settings) {
    const parts = Object.entries(settings).filter(([, value]) => value !== undefined && value !== "");
    this.changed(parts.map(([key, value]) => `${key}=${value}`).join("&"));
  }

  // Sets the objective from a moment of the run on, or without a moment for the whole run.
  objective(latency, at) {
    if (at === null) return this.#say({ slo: latency, push: "" });
    const pushes = this.#run.pushes.filter(push => push.at_s !== at);
    this.pushes([...pushes, { at_s: at, latency_ms: latency }].sort((a, b) => a.at_s - b.at_s));
  }

  pushes(pushes) {
    this.#say({ push: pushes.map(push => `${push.at_s}:${push.latency_ms}`).join(",") });
  }

  // Shows the settings of a run.
  show(run) {
    this.#run = run;
    part("faults").hidden = true;
    part("story").value = run.story;
    part("rival").value = run.rival;
    part("seed").value = run.seed;
    const isOwn = run.story === this.#facts.own;
    part("own").hidden = !isOwn;
    part("prose").textContent = isOwn
      ? `Your service can answer ${Math.round(run.capacity)} a second. Draw a load, choose what goes wrong, and play.`
      : run.prose;
    if (!isOwn) return;
    this.#curve.show(run.load, run.values.unit, run.duration_s, run.capacity);
    for (const [key, value] of Object.entries(run.values)) this.#controls.get(key)?.(value);
  }

  refuse(faults) {
    part("faults").replaceChildren(...faults.map(text => made("li", { textContent: text })));
    part("faults").hidden = false;
  }

  repaint() {
    this.#curve.paint();
  }
}
