// For 12 s three in ten answers are errors and two in ten come half a second late. That is no outage: what can
// succeed does, and nothing is shed that the upstream would have served.

import { SLO, inObjective, options as test, send, switchFault } from './lib/tidegate.js';

export { switchFault };

// The share of requests that the upstream answers with success.
const SERVED = 0.7;

export const options = test(
  [
    { name: 'before', seconds: 8, load: 0.6 },
    { name: 'brownout', seconds: 12, load: 0.6, switchTo: 'brownout' },
    { name: 'recovering', seconds: 3, load: 0.6, switchTo: 'none' },
    { name: 'after', seconds: 8, load: 0.6 },
  ],
  {
    ...inObjective('before'),
    'succeeded{phase:brownout}': [`rate>=${(0.95 * SERVED).toFixed(3)}`],
    'shed{phase:brownout}': ['rate<=0.05'],
    'succeeded{phase:after}': [`rate>=${SLO.success}`],
  },
  'brownout',
);

export function request() {
  send();
}
