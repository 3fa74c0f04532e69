// Half the capacity, nothing wrong: everything is served, within the objective, and nothing is shed.

import { SLO, inObjective, options as test, send } from './lib/tidegate.js';

export const options = test([{ name: 'steady', seconds: 15, load: 0.5 }], {
  ...inObjective('steady'),
  good: [`rate>=${SLO.quantile}`],
  shed: ['rate<=0.001'],
}, 'smoke');

export function request() {
  send();
}
