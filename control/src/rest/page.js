// Shows what `v1/events` tells. Texts from outside are only ever set as text.
"use strict";

// As much of a version as people compare; the whole is the cell's title.
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
  return resource.lastRefused?.version === resource.wanted ? "refused" : "behind";
}

function proxyRows(proxy) {
  const overruled = proxy.overruled.length ? element("small", `over ${proxy.overruled.join(", ")}`) : "";
  const asked = Object.entries(proxy.resources);
  const who = [proxy.id, element("small", `${proxy.api} ${proxy.dialect}, ${proxy.peer}`)];
  const policy = [proxy.policy ?? element("span", "none: observes", "aside"), overruled];
  if (asked.length === 0) return [[who, element("span", "asks for nothing yet", "aside"), policy, "", "", ""]];
  return asked.map(([name, resource]) => {
    const found = state(resource);
    const last = resource.lastRefused;
    const refusal = last ? [element("span", last.message, found === "refused" ? "refused" : ""), element("small", last.at)] : "";
    const named = asked.length > 1 ? element("small", name) : "";
    return [[...who, named], element("span", found, `state ${found}`), policy,
      version(resource.running), resource.running === resource.wanted ? "" : version(resource.wanted), refusal];
  });
}

function count(id, number) {
  at(id).textContent = number.toLocaleString("en");
  at(id).classList.toggle("nought", number === 0);
}

function show(world) {
  count("count-policies", world.policies.length);
  count("count-proxies", world.total);
  for (const name of ["current", "behind", "refused"]) count(`count-${name}`, world.states[name]);
  at("problems").hidden = world.problems.length === 0;
  at("problems").querySelector("ul").replaceChildren(...world.problems.map(problem => {
    const item = element("li", `${problem.policy ? `${problem.policy}: ` : ""}${problem.path}: found ${problem.found}, expected ${problem.expected}`);
    item.append(element("span", `${problem.source}:${problem.place.line}:${problem.place.column}`, "where"));
    return item;
  }));
  fill(at("policies"), world.policies.map(policy =>
    [policy.name, policy.source, policy.proxies.toLocaleString("en"), version(policy.version)]));
  fill(at("proxies"), world.proxies.flatMap(proxyRows));
  const hidden = world.total - world.proxies.length;
  at("more").hidden = hidden <= 0;
  at("more").textContent = `${hidden.toLocaleString("en")} more are not shown; v1/proxies lists all.`;
}

function link(state, text) {
  at("link").dataset.state = state;
  at("link").textContent = text;
}

// It reconnects by itself, and is told everything anew.
const events = new EventSource("v1/events");
events.onopen = () => link("live", "live");
events.onerror = () => link("lost", "the service does not answer");
events.onmessage = event => show(JSON.parse(event.data));
