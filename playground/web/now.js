// One moment of a run: the figures of both contenders, and why limit and breaker are where they are.

import { made } from "./made.js";

const part = id => document.getElementById(id);
const BREAKERS = ["closed", "half-open", "open"];

// The index of the last entry at or before a time; -1 before all.
export function lastAt(entries, at, time = entry => entry) {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time(entries[middle]) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const count = value => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));

const FIGURES = [
  ["good answers/s", (windows, index) => count(windows.good[index]), "windows"],
  ["shed/s", (windows, index) => count(windows.shed[index]), "windows"],
  ["failed or abandoned/s", (windows, index) => count(windows.failed[index]), "windows"],
  ["p99 latency", (windows, index) => (windows.p99_ms[index] === null || windows.p99_ms[index] === undefined ? "–" : `${count(windows.p99_ms[index])} ms`), "windows"],
  ["limit", (samples, index) => count(samples.limit[index]), "samples"],
  ["in flight", (samples, index) => count(samples.in_flight[index]), "samples"],
  ["waiting in the service", (samples, index) => count(samples.waiting[index]), "samples"],
  ["breaker", (samples, index) => BREAKERS[samples.breaker[index]] ?? "none", "samples"],
];

// The time of a window is its middle: a moment belongs to the window around it.
const HALF_WINDOW = 0.25;
// If a limit moves this soon after a new objective, the objective is the cause.
const SOON = 0.35;

export function showNow(run, at, isPointed) {
  part("now-title").textContent = `At ${at.toFixed(1)} s${isPointed ? "" : " (the playhead)"}`;
  const rows = FIGURES.map(([name, value, table]) => {
    const cells = ["tidegate", "rival"].map(whose => {
      const columns = run[whose][table];
      const index = lastAt(columns.at, table === "windows" ? at + HALF_WINDOW : at);
      return made("td", { className: whose, textContent: index < 0 ? "–" : value(columns, index) });
    });
    return made("tr", {}, made("th", { scope: "row", textContent: name }), ...cells);
  });
  part("figures").replaceChildren(...rows);
  showWhy(run, at);
}

function showWhy(run, at) {
  const { moves, notes } = run.tidegate;
  const last = lastAt(moves, at, move => move.at);
  const names = run.upstreams;
  // With several services: the one whose limit moved last.
  const upstream = moves[last]?.upstream;
  const own = moves.slice(0, last + 1).filter(move => move.upstream === upstream);
  const [before, now] = [own.at(-2), own.at(-1)];
  const where = [names.length > 1 && names[upstream], run.proxies > 1 && `the first of ${run.proxies} proxies`].filter(Boolean).join(", ");
  const change = !now ? "" : !before || before.limit === now.limit ? `limit ${now.limit}` : `limit ${before.limit} → ${now.limit}`;
  part("why-title").textContent = now
    ? `Why: ${change} at ${now.at.toFixed(1)} s, law “${now.law}”${where ? ` (${where})` : ""}`
    : "Why the limit is what it is";
  const pushed = run.pushes.findLast(push => now && push.at_s <= now.at && now.at - push.at_s < SOON);
  const first = pushed ? `The objective became ${pushed.latency_ms} ms at second ${pushed.at_s}. ` : "";
  part("why-text").textContent = now ? first + now.why : "Nothing has been decided yet.";
  const note = notes[lastAt(notes, at, note => note.at)];
  const service = note && names.length > 1 ? ` of ${names[note.upstream]}` : "";
  part("why-breaker").textContent = note
    ? `Breaker${service}: ${note.state} since ${note.at.toFixed(1)} s; reason: ${note.why}.`
    : "Breaker: closed; it has not moved so far.";
}

// The same explanation at the edge of the screen, for a moment that was tapped.
export function showPinned(isPinned) {
  part("pinned").hidden = !isPinned;
  if (!isPinned) return;
  part("pinned-title").textContent = `${part("now-title").textContent}. ${part("why-title").textContent}`;
  part("pinned-text").textContent = `${part("why-text").textContent} ${part("why-breaker").textContent}`;
}

// The share of what was possible, from the beginning up to a time.
export function shareUntil(run, whose, until) {
  const { at, good } = run[whose].windows;
  const { possible } = run.tidegate.windows;
  let [had, all] = [0, 0];
  for (let index = 0; index < at.length && at[index] <= until; index += 1) {
    had += good[index];
    all += possible[index];
  }
  return all > 0 ? had / all : null;
}

export function showScores(run, until) {
  const cards = ["tidegate", "rival"].map(whose => {
    const share = shareUntil(run, whose, until);
    const words = whose === "tidegate" ? "Tidegate" : run.rival_title;
    return made("div", { className: `score ${whose}` },
      made("span", { textContent: words }),
      made("b", { textContent: share === null ? "–" : `${Math.round(share * 100)} %` }),
      made("p", { textContent: "of the good answers that were possible so far" }));
  });
  part("scores").replaceChildren(...cards);
}

const FINAL = [
  ["score after the warm-up", played => played.figures.score.toFixed(3)],
  ["requests", played => count(played.requests)],
  ["shed in the end", played => count(played.figures.shed)],
  ["failed", played => count(played.figures.failed)],
  ["callers that gave up", played => count(played.figures.gave_up)],
  ["median latency", played => (played.figures.admitted_p50_ms === null ? "–" : `${count(played.figures.admitted_p50_ms)} ms`)],
  ["p99 latency", played => (played.figures.admitted_p99_ms === null ? "–" : `${count(played.figures.admitted_p99_ms)} ms`)],
  ["times a breaker opened", played => count(played.figures.breaker_opened)],
  ["sheds by reason", (played, words) => Object.entries(played.sheds).map(([reason, found]) => `${count(found)} × ${words[reason] ?? reason}`).join("; ") || "none"],
  ["simulated in", played => `${count(played.took_ms)} ms`],
  ["digest", played => played.digest],
];

export function showFigures(run, sheds) {
  part("runs-rival").textContent = part("now-rival").textContent = run.rival_title;
  const rows = FINAL.map(([name, value]) => made("tr", {},
    made("th", { scope: "row", textContent: name }),
    ...["tidegate", "rival"].map(whose => made("td", { textContent: value(run[whose], sheds) }))));
  document.querySelector("#runs tbody").replaceChildren(...rows);
}
