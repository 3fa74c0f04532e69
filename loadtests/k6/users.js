// Users that come by and by, ask for a page, look at it, and ask for the next.
//
// A closed model: a user who waits for an answer sends nothing meanwhile. Driven by the study of traffic
// management; the scenarios for staging beside this file use arrival rates instead.
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';

const users = Number(__ENV.USERS);
const ramp = users / Number(__ENV.USERS_PER_SECOND);
const length = Number(__ENV.LENGTH_SECONDS);
const think = Number(__ENV.THINK_SECONDS);
// How the response code details of a reply begin with which a proxy refused the request.
const shedDetails = __ENV.SHED_DETAILS.split(',');
const sheds = new Counter('sheds');

export const options = {
  scenarios: {
    users: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [
        { duration: `${ramp}s`, target: users },
        { duration: `${Math.max(length - ramp, 1)}s`, target: users },
      ],
      gracefulRampDown: '0s',
      gracefulStop: '0s',
    },
  },
  systemTags: ['status'],
  discardResponseBodies: true,
};

export default function () {
  const reply = http.get(__ENV.BASE_URL, { timeout: '10s' });
  const details = reply.headers['X-Response-Code-Details'] || '';
  if (shedDetails.some((beginning) => details.startsWith(beginning))) {
    sheds.add(1);
  }
  sleep(think);
}

export function handleSummary(data) {
  return { [__ENV.SUMMARY]: JSON.stringify(data) };
}
