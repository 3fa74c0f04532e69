// Finds the capacity: the rate goes up step by step, and in each step it is counted how many answers are good.
//
// Without protection, or in mode `observe`, the capacity is the greatest rate that is still in the objective. With a
// policy that enforces, good answers stay at the capacity however high the rate. So both are told, and the greater
// number of good answers a second is what CAPACITY should be. It always passes: it judges nothing.

import { SLO, goodIn, number, options as test, send, setting } from './lib/tidegate.js';

const FROM = number('FROM_RATE', 25);
const TO = number('TO_RATE', 1000);
const STEP_S = number('STEP_SECONDS', 10);
const FACTOR = number('STEP_FACTOR', 1.3);
// After each step, so that what waits is gone before the next one.
const PAUSE_S = 3;

if (FACTOR <= 1) throw new Error(`STEP_FACTOR: found ${FACTOR}, expected a number above 1`);
if (TO < FROM) throw new Error(`TO_RATE: found ${TO}, expected FROM_RATE (${FROM}) or more`);

const RATES = [];
for (let rate = FROM; rate < TO * FACTOR; rate *= FACTOR) RATES.push(Math.min(Math.round(rate), TO));

// In multiples of the capacity, which is what is looked for: of 1 here.
const CAPACITY = number('CAPACITY', 250);
const steps = RATES.flatMap((rate, index) => [
  { name: `step${index}`, seconds: STEP_S, load: rate / CAPACITY },
  { name: `pause${index}`, seconds: PAUSE_S, load: FROM / CAPACITY / 2 },
]);
const played = test(steps, {}, 'capacity');

export const options = {
  ...played,
  // Sub-metrics exist only where a threshold names them; these hold always.
  thresholds: Object.fromEntries(RATES.map((_, index) => [`good{phase:step${index}}`, ['rate>=0']])),
};

export function request() {
  send();
}

export function handleSummary(data) {
  const rows = RATES.map((rate, index) => {
    const { good, all } = goodIn(data, `step${index}`);
    return { rate, sent: all / STEP_S, goodput: good / STEP_S, share: all > 0 ? good / all : 0 };
  });
  // A step in which the load generator fell behind says nothing of the service.
  const sound = rows.filter((row) => row.sent >= 0.95 * row.rate);
  const kept = sound.filter((row) => row.share >= Math.min(SLO.quantile, SLO.success));
  const best = sound.reduce((most, row) => (row.goodput > most.goodput ? row : most), { goodput: 0, rate: 0 });
  const inObjective = kept.length > 0 ? kept[kept.length - 1].rate : 0;
  const capacity = Math.floor(Math.max(best.goodput, inObjective));
  const lines = [
    'rate/s   sent/s   good/s   good',
    ...rows.map(
      (row) =>
        `${String(row.rate).padEnd(9)}${row.sent.toFixed(1).padEnd(9)}${row.goodput.toFixed(1).padEnd(9)}${(100 * row.share).toFixed(1)} %${
          row.sent >= 0.95 * row.rate ? '' : '   k6 fell behind: not counted'
        }`,
    ),
    '',
    `greatest rate in the objective: ${inObjective}`,
    `most good answers a second: ${best.goodput.toFixed(1)}, at ${best.rate}`,
    sound.length > 0 && best.rate === sound[sound.length - 1].rate
      ? `CAPACITY is ${capacity} or more: go on with a greater TO_RATE`
      : `CAPACITY=${capacity}`,
    '',
  ];
  const report = { capacity, inObjective, best, steps: rows };
  const file = setting('CAPACITY_FILE');
  return { stdout: `${lines.join('\n')}\n`, ...(file ? { [file]: JSON.stringify(report, null, 2) } : {}) };
}
