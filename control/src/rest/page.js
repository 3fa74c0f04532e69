// Shows the data of `v1/events`. Received texts are only ever set as text.
"use strict";

// Characters of a version that are shown; the title of the cell has all of them.
const SHOWN_OF_VERSION = 12;

const at = id => document.getElementById(id);

function element(tag, text, style) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (style) made.className = style;
  return made;
}

function version(text) {
  if (!text) return "";
  const made = element("code", text.slice(0, SHOWN_OF_VERSION));
  made.title = text;
  return made;
}

// A table's body from rows of [content, class] for each column.
function fill(section, rows) {
  const table = section.querySelector("table");
  const names = [...table.tHead.rows[0].cells].map(cell => cell.textContent.trim());
  table.tBodies[0].replaceChildren(...rows.map(cells => {
    const row = element("tr");
    cells.forEach((content, column) => {
      const cell = element("td");
      cell.dataset.name = names[column];
      const parts = Array.isArray(content) ? content : [content];
      cell.append(...parts.filter(part => part !== "" && part != null));
      if (table.tHead.rows[0].cells[column].className) cell.className = table.tHead.rows[0].cells[column].className;
      row.append(cell);
    });
    return row;
  }));
  table.hidden = rows.length === 0;
  section.querySelector(".none").hidden = rows.length !== 0;
}

function state(resource) {
  if (resource.wanted === resource.running) return "current";
  return resource.lastRejected?.version === resource.wanted ? "rejected" : "behind";
}

function proxyRows(proxy) {
  const overruled = proxy.overruled.length ? element("small", `over ${proxy.overruled.join(", ")}`) : "";
  const asked = Object.entries(proxy.resources);
  const who = [proxy.id, element("small", `${proxy.api} ${proxy.dialect}, ${proxy.peer}`)];
  const policy = [proxy.policy ?? element("span", "none: observes", "aside"), overruled];
  if (asked.length === 0) return [[who, element("span", "no resource requested yet", "aside"), policy, "", "", ""]];
  return asked.map(([name, resource]) => {
    const found = state(resource);
    const last = resource.lastRejected;
    const rejection = last ? [element("span", last.message, found === "rejected" ? "rejected" : ""), element("small", last.at)] : "";
    const named = asked.length > 1 ? element("small", name) : "";
    return [[...who, named], element("span", found, `state ${found}`), policy,
      version(resource.running), resource.running === resource.wanted ? "" : version(resource.wanted), rejection];
  });
}

function count(id, number) {
  at(id).textContent = number.toLocaleString("en");
  at(id).classList.toggle("zero", number === 0);
}

function show(state) {
  count("count-policies", state.policies.length);
  count("count-proxies", state.total);
  for (const name of ["current", "behind", "rejected"]) count(`count-${name}`, state.states[name]);
  at("disabled").hidden = !state.disabled.all;
  at("disabled").textContent = `All policies are off: every request passes. ${state.disabled.by.map(one => `${one.source}: ${one.note}`).join("; ")}`;
  at("problems").hidden = state.problems.length === 0;
  at("problems").querySelector("ul").replaceChildren(...state.problems.map(problem => {
    const item = element("li", `${problem.policy ? `${problem.policy}: ` : ""}${problem.path}: found ${problem.found}, expected ${problem.expected}`);
    item.append(element("span", `${problem.source}:${problem.place.line}:${problem.place.column}`, "where"));
    return item;
  }));
  fill(at("policies"), state.policies.map(policy =>
    [policy.name, policy.enabled ? policy.mode : "off", policy.source, policy.proxies.toLocaleString("en"), version(policy.version)]));
  fill(at("proxies"), state.proxies.flatMap(proxyRows));
  const hidden = state.total - state.proxies.length;
  at("more").hidden = hidden <= 0;
  at("more").textContent = `${hidden.toLocaleString("en")} more are not shown; v1/proxies lists all.`;
  followGraph(state);
}

function link(state, text) {
  at("link").dataset.state = state;
  at("link").textContent = text;
}

// An EventSource reconnects by itself and then receives the complete data again.
const events = new EventSource("v1/events");
events.onopen = () => link("live", "live");
events.onerror = () => link("lost", "the service does not answer");
events.onmessage = event => show(JSON.parse(event.data));
