// Three times the capacity in four classes: who matters most is served, who matters least makes room.

import { SLO, goodput, inObjective, options as test, send } from './lib/tidegate.js';

const OVERLOAD_S = 15;

export const options = test(
  [
    { name: 'before', seconds: 8, load: 0.7, exec: 'critical' },
    {
      name: 'overload',
      seconds: OVERLOAD_S,
      loads: [
        { name: 'critical_plus', exec: 'criticalPlus', load: 0.3 },
        { name: 'critical', exec: 'critical', load: 0.3 },
        { name: 'sheddable_plus', exec: 'sheddablePlus', load: 0.9 },
        { name: 'sheddable', exec: 'sheddable', load: 1.5 },
      ],
    },
  ],
  {
    ...inObjective('before'),
    'succeeded{phase:overload,criticality:critical_plus}': [`rate>=${SLO.success}`],
    'succeeded{phase:overload,criticality:critical}': ['rate>=0.95'],
    'shed{phase:overload,criticality:sheddable}': ['rate>=0.8'],
    ...goodput('overload', OVERLOAD_S, 0.8),
  },
  'priority',
);

export function criticalPlus() {
  send({ criticality: 'critical_plus' });
}

export function critical() {
  send({ criticality: 'critical' });
}

export function sheddablePlus() {
  send({ criticality: 'sheddable_plus' });
}

export function sheddable() {
  send({ criticality: 'sheddable' });
}
