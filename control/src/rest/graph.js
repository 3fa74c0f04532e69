// Draws the service graph of `v1/graph/busiest`: dagre places the services, this file draws them as SVG. Received texts are only
// ever set as text.
"use strict";

// Above this many calls, the picture has no numbers beside them: the table has all.
const MAX_LABELED = 40;
// Characters of a name in the picture; the title has all of them.
const SHOWN_OF_NAME = 26;
const WIDEST_CALL = 7;
// Of the numbers at a call, in pixels.
const NUMBER_WIDTH = 80;

const graphState = { key: null, chosen: null, shown: null };

// Characters that act instead of being seen could make a name look like another one.
const seen = text => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, c => `\\u{${c.codePointAt(0).toString(16)}}`);
const percent = share => share == null ? "–" : share === 1 ? "100 %" : `${(share * 100).toFixed(share < 0.9995 ? 1 : 2)} %`;
const span = seconds => seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} minutes`;
const millis = seconds => seconds == null ? "–" : `${(seconds * 1000).toPrecision(3)} ms`;
const rate = number => number == null ? "–" : number.toLocaleString("en", { maximumSignificantDigits: 3 });
const nameOf = service => service.namespace ? `${service.namespace}/${service.name}` : service.name;
const HEALTH = { good: "good", degraded: "degraded", failing: "failing", unknown: "not known" };

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Reads the graph again when it or the policies have changed.
async function followGraph(state) {
  at("graph").hidden = state.graph == null;
  const key = JSON.stringify([state.graph, state.policies.map(policy => [policy.name, policy.version])]);
  if (state.graph == null || key === graphState.key) return;
  graphState.key = key;
  try {
    const reply = await fetch("v1/graph/busiest");
    const text = await reply.text();
    const found = JSON.parse(text, (_, value) => typeof value === "string" ? seen(value) : value);
    if (graphState.key !== key) return;
    if (reply.ok) showGraph(found);
    else at("graph-note").textContent = found.detail;
  } catch (error) {
    // The next event asks again.
    graphState.key = null;
    at("graph-note").textContent = `The service graph cannot be shown: ${error.message}`;
  }
}

function showGraph({ readAt, failure, overview }) {
  const { services, calls } = overview;
  graphState.shown = overview;
  const all = overview.totalServices;
  const part = all > services.length
    ? `the ${services.length} busiest of ${all.toLocaleString("en")} services, ${calls.length} of ${overview.totalCalls.toLocaleString("en")} calls`
    : `${services.length} services, ${calls.length} calls`;
  at("graph-note").textContent = `Traffic of ${span(overview.windowSeconds)}, read at ${new Date(readAt).toLocaleTimeString()}: ${part}. Choose a service to see what is in force and what is recommended.`;
  at("graph-failure").hidden = failure == null;
  at("graph-failure").textContent = failure ? `The graph could not be read at ${new Date(failure.at).toLocaleTimeString()}, so this is the last one: ${failure.message}` : "";
  at("unreachable").hidden = overview.unreachable.length === 0;
  at("unreachable").textContent = `Objectives out of reach at the observed load: ${overview.unreachable.join("; ")}`;
  at("graph-warnings").replaceChildren(...overview.warnings.map(text => element("li", text)));
  fill(at("calls"), calls.map(call => [
    nameOf(services[call.caller]), nameOf(services[call.upstream]) + (call.cluster ? ` (${call.cluster})` : ""),
    element("span", HEALTH[call.health], `state ${call.health}`), rate(call.rate), percent(call.success),
    millis(call.p50_seconds), millis(call.p99_seconds)]));
  draw(services, calls);
  const kept = services.findIndex(service => nameOf(service) === graphState.chosen);
  choose(kept < 0 ? null : kept);
}

function draw(services, calls) {
  at("picture").hidden = services.length === 0;
  if (services.length === 0) return at("picture").replaceChildren();
  const layout = new dagre.graphlib.Graph({ multigraph: true });
  layout.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 36, marginx: 12, marginy: 12 });
  const isLabeled = calls.length <= MAX_LABELED;
  const short = text => text.length > SHOWN_OF_NAME ? `${text.slice(0, SHOWN_OF_NAME - 1)}…` : text;
  services.forEach((service, index) => layout.setNode(String(index), {
    width: 26 + 7.6 * Math.max(short(service.name).length, short(service.namespace).length * 0.85), height: 44 }));
  calls.forEach((call, index) => layout.setEdge(String(call.caller), String(call.upstream),
    isLabeled ? { width: NUMBER_WIDTH + 12, height: 24, labelpos: "c" } : {}, String(index)));
  dagre.layout(layout);

  const most = Math.max(...calls.map(call => call.rate ?? 0), Number.MIN_VALUE);
  const { width, height } = layout.graph();
  const heads = Object.keys(HEALTH).map(health => svg("marker",
    { id: `head-${health}`, class: health, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z" })));
  const numbers = [];
  const lines = layout.edges().map(edge => {
    const call = calls[Number(edge.name)], { points, x } = layout.edge(edge);
    const path = svg("path", { d: curve(points), "stroke-width": (1.2 + (WIDEST_CALL - 1.2) * Math.sqrt((call.rate ?? 0) / most)).toFixed(2), "marker-end": `url(#head-${call.health})` });
    // Numbers come after all lines, so that no line crosses them.
    if (isLabeled && x != null) numbers.push(svg("text", { class: "aside", x, y: topOf(points, x) - 6 }, `${rate(call.rate)}/s ${percent(call.success)}`));
    return svg("g", { class: `call ${call.health}` }, svg("title", {}, describe(services, call)), path);
  });
  const boxes = services.map((service, index) => box(service, index, layout.node(String(index)), calls, short));
  const [wide, high] = [Math.ceil(width), Math.ceil(height)];
  at("picture").replaceChildren(svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": "services and their calls" },
    svg("defs", {}, ...heads), ...lines, ...numbers, ...boxes));
}

function box(service, index, { x, y, width, height }, calls, short) {
  const worst = worstOf(calls.filter(call => call.upstream === index));
  const isMissed = service.advice.some(advice => advice.inForce.some(found => found.verdicts.length));
  const label = `${nameOf(service)}, ${worst ? `calls to it: ${HEALTH[worst]}` : "nothing calls it"}${isMissed ? ", objective missed" : ""}`;
  const group = svg("g", { class: `service ${worst ?? "unknown"}${isMissed ? " missed" : ""}`, tabindex: 0, role: "button", "aria-label": label, "aria-pressed": "false",
    transform: `translate(${x - width / 2} ${y - height / 2})` },
  svg("title", {}, label), svg("rect", { width, height, rx: 6 }),
  svg("text", { x: width / 2, y: service.namespace ? 19 : 27 }, (isMissed ? "! " : "") + short(service.name)));
  if (service.namespace) group.append(svg("text", { x: width / 2, y: 35, class: "aside" }, short(service.namespace)));
  group.addEventListener("click", () => choose(index));
  group.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(index);
  });
  return group;
}

function worstOf(calls) {
  return ["failing", "degraded", "good", "unknown"].find(health => calls.some(call => call.health === health));
}

function describe(services, call) {
  return `${nameOf(services[call.caller])} to ${nameOf(services[call.upstream])}: ${HEALTH[call.health]}, ${rate(call.rate)} requests a second, ${percent(call.success)} succeed, p99 ${millis(call.p99_seconds)}`;
}

// The highest place of a line beside the number in its middle: a line that falls is higher at the number's left.
function topOf(points, x) {
  const sorted = [...points].sort((a, b) => a.x - b.x);
  const heightAt = x => {
    const b = sorted.find(point => point.x >= x) ?? sorted.at(-1), a = sorted.findLast(point => point.x < x) ?? sorted[0];
    return a.y + (b.y - a.y) * (b.x > a.x ? (Math.min(x, b.x) - a.x) / (b.x - a.x) : 0);
  };
  return Math.min(...[-NUMBER_WIDTH / 2, 0, NUMBER_WIDTH / 2].map(aside => heightAt(x + aside)));
}

// A line through the points, rounded at each.
function curve(points) {
  const middle = (a, b) => `${(a.x + b.x) / 2} ${(a.y + b.y) / 2}`;
  const inner = points.slice(1, -1).map((point, index) => `Q${point.x} ${point.y} ${index === points.length - 3 ? `${points.at(-1).x} ${points.at(-1).y}` : middle(point, points[index + 2])}`);
  return `M${points[0].x} ${points[0].y}` + (inner.join("") || `L${points.at(-1).x} ${points.at(-1).y}`);
}

// Shows what is in force for a service and what is recommended.
function choose(index) {
  const { services, calls } = graphState.shown;
  const service = index == null ? null : services[index];
  graphState.chosen = service && nameOf(service);
  at("picture").querySelectorAll(".service").forEach((made, other) => made.setAttribute("aria-pressed", String(other === index)));
  at("service").hidden = service == null;
  if (!service) return;
  const list = (title, texts) => texts.length ? [element("h4", title), ...texts] : [];
  const parts = service.advice.flatMap(advice => {
    const inForce = advice.inForce.flatMap(found => [
      element("p", `${found.policy}: ${found.objective}`),
      ...found.verdicts.map(text => element("p", `Missed: ${text}`, "rejected"))]);
    const isSame = advice.inForce.length > 0 && advice.inForce.every(found => !found.differs);
    const recommended = advice.recommended
      ? [element("p", isSame ? `No change: ${advice.recommended}` : advice.recommended)] : [];
    if (advice.against) recommended.push(element("p", advice.recommended ? `No rule can name it: ${advice.against}` : `None: ${advice.against}`, "aside"));
    return [element("h3", advice.upstream),
      ...list("Policy in force", inForce.length ? inForce : [element("p", "none", "aside")]),
      ...list("Recommended", recommended)];
  });
  const of = end => calls.filter(call => call[end] === index).map(call => element("p", describe(services, call)));
  at("service").replaceChildren(
    ...(parts.length ? parts : [element("h3", nameOf(service)), element("p", "Nothing calls it, so there is no objective for it.", "aside")]),
    ...list("Calls to it", of("upstream")), ...list("Calls from it", of("caller")));
}
