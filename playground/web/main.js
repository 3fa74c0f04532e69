// The page: the fragment of its address is the run. Changing a setting changes the fragment. Both contenders then play the run in workers, and the playhead moves through the results.

import init, { describe, facts, scenario_file as scenarioFile } from "./tidegate_playground.js";
import { breakers } from "./breakers.js";
import { Charts } from "./charts.js";
import { Form } from "./form.js";
import { drawn, made } from "./made.js";
import { lastAt, showFigures, showNow, showPinned, showScores } from "./now.js";
import { Objective } from "./objective.js";
import { Player } from "./player.js";
import { Runs } from "./runs.js";

const part = id => document.getElementById(id);
const state = words => (document.body.dataset.state = words);

const address = () => {
  const fragment = location.hash.slice(1);
  try {
    return decodeURIComponent(fragment);
  } catch {
    // A stray % is an invalid setting, and is reported like any other.
    return fragment;
  }
};

// The shown run: the fragment as it was read, and its results once it has been played.
let described = null;
let run = null;
let pointed = null;
let isPinned = false;

const failed = error => {
  part("failure").textContent = `Something went wrong: ${error?.message ?? error}`;
  part("failure").hidden = false;
  state("failed");
};

async function start() {
  await init();
  const known = JSON.parse(facts());
  const runs = new Runs();
  const player = new Player(at => moved(at), () => playing());
  const form = new Form(known, fragment => void choose(fragment));
  const objective = new Objective(known.objectives_ms, (latency, at) => form.objective(latency, at), pushes => form.pushes(pushes));
  const charts = new Charts((at, isTouch) => {
    [pointed, isPinned] = [at, isTouch];
    if (run) look();
  });
  // A moment stays pinned until it is closed, or the playhead is moved.
  const unpin = () => {
    if (!isPinned) return;
    [pointed, isPinned] = [null, false];
    charts.mark(null);
    if (run) look();
  };

  async function choose(fragment) {
    const found = JSON.parse(describe(fragment));
    if (found.faults) {
      form.refuse(found.faults);
      if (!described) await choose("");
      form.refuse(found.faults);
      return;
    }
    const isSameStory = described?.story === found.story;
    described = found;
    history.replaceState(null, "", `#${found.fragment}`);
    form.show(found);
    objective.show(found, isSameStory ? player.at : 0);
    part("said").textContent = "";
    state("simulating");
    player.isHeld = true;
    try {
      const [tidegate, rival] = await Promise.all([
        runs.of(0, found.fragment, known.tidegate),
        runs.of(1, found.fragment, found.rival),
      ]);
      if (described !== found) return;
      take(found, tidegate, rival, isSameStory);
    } catch (error) {
      // The user chose another run before this one was played.
      if (described === found && error.message !== "superseded") failed(error);
    }
  }

  function take(found, tidegate, rival, isSameStory) {
    const changes = [{ at_s: 0, latency_ms: found.objective_ms }, ...found.pushes];
    const objectiveAt = at => changes[lastAt(changes, at, change => change.at_s)].latency_ms;
    // Where callers wait for their answers, no load is planned: the chart has no such line.
    const offeredAt = at => found.offered[Math.min(found.offered.length - 1, Math.floor((at / found.duration_s) * found.offered.length))] ?? null;
    const plan = { objective: objectiveAt, offered: offeredAt };
    run = { ...found, duration: found.duration_s, tidegate, rival, plan };
    const beyond = charts.take(run);
    part("clipped").textContent = `thick: limit, thin: in flight; move over the chart, or tap it, to see why the limit moved${beyond ? `; ${found.rival_title} goes up to ${beyond.toLocaleString("en")}` : ""}`;
    legend(found.rival_title);
    showFigures(run, known.sheds);
    part("scrub").max = found.duration_s;
    if (!isSameStory) {
      player.at = 0;
      unpin();
    }
    player.take(found.duration_s);
    part("failure").hidden = true;
    player.isHeld = false;
    state("ready");
  }

  function moved(at) {
    part("scrub").value = at;
    part("time").textContent = `${at.toFixed(1)} s of ${run.duration} s`;
    part("scrub").setAttribute("aria-valuetext", part("time").textContent);
    objective.at(at, run.duration);
    charts.show(at);
    breakers(part("breakers"), run, at);
    showScores(run, at);
    look();
  }

  // The moment under the pointer, as far as it has been played; otherwise the playhead.
  function look() {
    const isPointed = pointed !== null && pointed <= player.at;
    showNow(run, isPointed ? pointed : player.at, isPointed);
    showPinned(isPinned && isPointed);
  }

  function playing() {
    part("play").textContent = player.isPlaying ? "Pause" : "Play";
    document.body.dataset.playing = player.isPlaying;
  }

  const toggle = () => run && (player.isPlaying ? player.pause() : player.play());
  for (const id of ["play", "begin", "end", "unpin"]) part(id).addEventListener("click", unpin);
  part("scrub").addEventListener("input", unpin);
  part("play").addEventListener("click", toggle);
  part("begin").addEventListener("click", () => run && player.seek(0));
  part("end").addEventListener("click", () => run && player.seek(run.duration));
  part("speed").addEventListener("change", event => (player.speed = Number(event.target.value)));
  part("scrub").addEventListener("input", event => run && player.seek(Number(event.target.value)));
  addEventListener("keydown", event => {
    const isText = event.target.closest?.("input, select, button, summary, textarea");
    if (event.key !== " " || isText || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    toggle();
  });
  part("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      part("said").textContent = "Copied.";
    } catch {
      part("said").textContent = `Copy it from here: ${location.href}`;
    }
  });
  part("save").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([scenarioFile(described.fragment)], { type: "application/toml" }));
    made("a", { href: address, download: `${described.name}.toml` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    part("said").textContent = `Play it with: tidegate-sim run ${described.name}.toml${described.rival === "none" ? "" : ` --contender ${described.rival}`}`;
  });
  addEventListener("hashchange", () => void choose(address()));
  const repaint = () => {
    charts.repaint();
    form.repaint();
    if (run) moved(player.at);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("resize", () => run && breakers(part("breakers"), run, player.at));
  await choose(address());
  // If the user prefers reduced motion, the playhead begins at the end, where nothing moves.
  if (run && matchMedia("(prefers-reduced-motion: reduce)").matches) player.seek(run.duration);
}

function legend(rival) {
  const lines = [
    ["Tidegate", "tidegate", ""],
    [rival, "rival", "8 3"],
    ["possible: an oracle that knows the capacity", "possible", ""],
    ["offered", "faint", "2 4"],
  ];
  part("legend").replaceChildren(...lines.map(([words, color, dash]) => {
    const line = drawn("line", { x1: 0, x2: 26, y1: 6, y2: 6, class: `line-${color}`, "stroke-width": color === "possible" ? 8 : 2.5, "stroke-dasharray": dash });
    return made("li", {}, drawn("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, line), words);
  }));
}

start().catch(failed);
// The page works without it where the browser does not allow it, as on a page without TLS.
navigator.serviceWorker?.register("offline.js").catch(() => {});
