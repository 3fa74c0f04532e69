// The breakers' states over time: a lane for Tidegate and one for the rival.

import { LEFT, RIGHT } from "./charts.js";
import { drawn } from "./made.js";
import { themed } from "./theme.js";

const STATES = [["closed", "--good"], ["half-open", "--wait"], ["open", "--bad"]];
const LANE = 12;

export function breakers(place, run, until) {
  const width = Math.max(100, place.clientWidth);
  const x = at => LEFT + (at / run.duration) * (width - LEFT - RIGHT);
  const lanes = [["tidegate", "Tidegate"], ["rival", "rival"]].map(([whose, words], lane) => {
    const { at, breaker } = run[whose].samples;
    const y = lane * (LANE + 6) + 4;
    const bars = [];
    let from = 0;
    for (let index = 1; index <= at.length; index += 1) {
      const isOver = index === at.length || at[index] > until;
      if (!isOver && breaker[index] === breaker[from]) continue;
      const state = STATES[breaker[from]];
      const end = Math.min(until, at[index] ?? run.duration);
      if (state && end > at[from]) {
        const [name, color] = state;
        // Color is not the only sign: a worse state is drawn higher.
        const height = name === "closed" ? 3 : name === "half-open" ? 8 : LANE;
        const bar = drawn("rect", { x: x(at[from]), y: y + LANE - height, width: x(end) - x(at[from]), height, fill: themed(color) });
        bar.append(drawn("title", {}, `${words}: ${name} from ${at[from].toFixed(1)} s`));
        bars.push(bar);
      }
      from = index;
      if (isOver) break;
    }
    const text = drawn("text", { x: 0, y: y + LANE - 2 });
    text.append(bars.length || until === 0 ? words : `${words}: no breaker`);
    return [text, ...bars];
  });
  const picture = drawn("svg", { role: "img", "aria-label": "State of the breakers: low is closed, high is open" }, ...lanes.flat());
  place.replaceChildren(picture);
}
