// Plays runs outside the page's thread: a run takes a second, during which the page must stay responsive.

import init, { play } from "./tidegate_playground.js";

const ready = init();

addEventListener("message", async ({ data: { id, fragment, contender } }) => {
  try {
    await ready;
    const began = performance.now();
    const played = JSON.parse(play(fragment, contender));
    postMessage({ id, played: { ...played, took_ms: performance.now() - began } });
  } catch (error) {
    // After a panic the module's state may be wrong, so the page starts another worker.
    postMessage({ id, error: error?.message ?? String(error) });
  }
});
