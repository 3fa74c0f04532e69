// Plays runs, beside the page: a run takes a second in which the page must not stand still.

import init, { play } from "./tidegate_playground.js";

const ready = init();

addEventListener("message", async ({ data: { id, fragment, contender } }) => {
  try {
    await ready;
    const began = performance.now();
    const played = JSON.parse(play(fragment, contender));
    postMessage({ id, played: { ...played, took_ms: performance.now() - began } });
  } catch (error) {
    // After a panic the module is not to be trusted any more: the page starts another worker.
    postMessage({ id, error: error?.message ?? String(error) });
  }
});
