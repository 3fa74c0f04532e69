// The upstream answers everything with an error for 12 s: it is left alone, callers are told at once, and
// when it is back, so is the service. Without FAULT_URL somebody has to break it by hand when the test says so.

import { SLO, inObjective, options as test, send, switchFault } from './lib/tidegate.js';

export { switchFault };

export const options = test(
  [
    { name: 'before', seconds: 8, load: 0.7 },
    { name: 'outage', seconds: 12, load: 0.7, switchTo: 'outage' },
    { name: 'recovering', seconds: 5, load: 0.7, switchTo: 'none' },
    { name: 'after', seconds: 8, load: 0.7 },
  ],
  {
    ...inObjective('before'),
    // What reaches a dead upstream comes back as its error; the rest is shed in front of it.
    'failed{phase:outage}': ['rate<=0.1'],
    'shed{phase:outage}': ['rate>=0.85'],
    'caller_latency{phase:outage}': [`p(95)<=${SLO.latencyMs / 3}`],
    ...inObjective('after'),
  },
  'outage',
);

export function request() {
  send();
}
