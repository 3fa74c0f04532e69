// A spike of 5 s whose callers try up to ten times more, whatever they are told: when the spike is over, the storm is too.

import { CAPACITY, SLO, goodput, inObjective, options as test, send } from './lib/tidegate.js';

const SPIKE_S = 5;
const AFTER_S = 8;

export const options = test(
  [
    { name: 'before', seconds: 8, load: 0.7 },
    { name: 'spike', seconds: SPIKE_S, load: 2, longestMs: 2000 },
    { name: 'settling', seconds: 5, load: 0.7, longestMs: 2000 },
    { name: 'after', seconds: AFTER_S, load: 0.7 },
  ],
  {
    ...inObjective('before'),
    ...goodput('spike', SPIKE_S, 0.3),
    'succeeded{phase:after}': [`rate>=${SLO.success}`],
    'admitted_latency{phase:after}': [`p(95)<=${SLO.latencyMs}`],
    'attempts{phase:after}': [`count<=${Math.ceil(1.1 * 0.7 * CAPACITY * AFTER_S)}`],
  },
  'retry-storm',
);

export function request() {
  send({ retries: 10 });
}
