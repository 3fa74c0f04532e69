// Users that come by and by, ask for a page, look at it, and ask for the next.
//
// A closed model: a user who waits for an answer sends nothing meanwhile. Driven by the study of traffic
// management; the scenarios for staging beside this file use arrival rates instead. By hand:
//
//   BASE_URL=http://127.0.0.1:10000/ k6 run users.js
//
// USERS (10), USERS_PER_SECOND (10), LENGTH_SECONDS (30) and THINK_SECONDS (1) change it. SUMMARY names a file for k6's
// summary; without it, one line is printed.
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';

if (!__ENV.BASE_URL) {
  throw new Error('BASE_URL: found nothing, expected the address of a proxy, such as http://127.0.0.1:10000');
}
const users = Number(__ENV.USERS || 10);
const ramp = users / Number(__ENV.USERS_PER_SECOND || 10);
const length = Number(__ENV.LENGTH_SECONDS || 30);
const think = Number(__ENV.THINK_SECONDS || 1);
// How the response code details of a reply begin with which a proxy shed the request.
const shedDetails = (__ENV.SHED_DETAILS || 'tidegate_shed_').split(',');
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
  if (__ENV.SUMMARY) {
    return { [__ENV.SUMMARY]: JSON.stringify(data) };
  }
  const value = (metric, name) => (data.metrics[metric] ? data.metrics[metric].values[name] : 0);
  const requests = `requests ${value('http_reqs', 'count')}, shed ${value('sheds', 'count')}`;
  return { stdout: `${requests}, latency p95 ${value('http_req_duration', 'p(95)').toFixed(0)} ms\n` };
}
