// What all tests share: the objective, the phases, a caller that notes what became of its request, and faults.
//
// Settings come from the environment (README.md lists them), so that the same files run against the stage of
// `make loadtest-k6` and against any staging. Every request is noted once, from its first attempt to its last
// answer, in `caller_latency`; its tags say in which phase, how critical, with which outcome and, where it was shed, why.

import http from 'k6/http';
import { check, fail, sleep } from 'k6';
import encoding from 'k6/encoding';
import { Counter, Rate, Trend } from 'k6/metrics';

/**
 * What a file says of one staging environment: the settings below by name, and thresholds by test. The file is named
 * by ENVIRONMENT. What the shell says wins over it.
 */
const ENVIRONMENT = __ENV.ENVIRONMENT ? environment(__ENV.ENVIRONMENT) : { settings: {}, thresholds: {} };

/**
 * What a file contains. A name is seen from the folder in which k6 was started: k6's own `open` sees it from the
 * folder of the script that calls it, which is this one.
 */
function read(path) {
  if (path.startsWith('/') || /^[A-Za-z]:[\\/]/.test(path)) return open(path);
  if (!__ENV.PWD) throw new Error(`${path}: found no PWD in the environment, expected a whole path`);
  return open(`${__ENV.PWD}/${path}`);
}

function environment(path) {
  const { settings = {}, thresholds = {}, ...unknown } = JSON.parse(read(path));
  const names = Object.keys(unknown);
  if (names.length > 0) throw new Error(`${path}: found ${names}, expected settings and thresholds`);
  return { settings, thresholds };
}

/** A setting as a text; empty: it is not set. */
export function setting(name) {
  const shell = __ENV[name];
  if (shell !== undefined && shell !== '') return shell;
  const value = ENVIRONMENT.settings[name];
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

/** A setting that is a number. */
export function number(name, fallback) {
  const text = setting(name);
  const value = text === '' ? fallback : Number(text);
  if (!Number.isFinite(value) || value <= 0) {
    throw new Error(`${name}: found ${text}, expected a number above 0`);
  }
  return value;
}

if (!setting('BASE_URL')) {
  throw new Error('BASE_URL: found nothing, expected the address of a proxy, such as http://127.0.0.1:10000');
}
const BASE_URL = setting('BASE_URL').replace(/\/+$/, '');
const FAULT_URL = setting('FAULT_URL').replace(/\/+$/, '');
const PATH = setting('REQUEST_PATH') || '/';
const METHOD = setting('METHOD') || 'GET';
const BODY = setting('BODY_FILE') ? read(setting('BODY_FILE')) : setting('BODY') || null;
const CRITICALITY_HEADER = setting('CRITICALITY_HEADER') || 'x-criticality';
const DETAILS_HEADER = setting('DETAILS_HEADER') || 'x-response-code-details';
const REASON_HEADER = setting('REASON_HEADER') || 'x-tidegate-reason';

/** Headers of every request: those of HEADERS, and the one that authenticates. */
const HEADERS = { ...headersOf(setting('HEADERS')), ...authentication() };

function headersOf(text) {
  if (text === '') return {};
  const headers = JSON.parse(text);
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw new Error(`HEADERS: found ${text}, expected an object such as {"x-tenant": "load-test"}`);
  }
  return headers;
}

function authentication() {
  const token = setting('BEARER_TOKEN_FILE') ? read(setting('BEARER_TOKEN_FILE')).trim() : setting('BEARER_TOKEN');
  if (token !== '') return { authorization: `Bearer ${token}` };
  const user = setting('BASIC_USER');
  if (user === '') return {};
  return { authorization: `Basic ${encoding.b64encode(`${user}:${setting('BASIC_PASSWORD')}`)}` };
}

/** Requests a second that the upstream can serve. */
export const CAPACITY = number('CAPACITY', 250);

/** The objective: this share of answers within this many milliseconds, and this share of requests with success. */
export const SLO = {
  latencyMs: number('SLO_MS', 300),
  quantile: number('SLO_QUANTILE', 0.99),
  success: number('SLO_SUCCESS', 0.99),
};

/** The pause before a retry doubles so many times at most. */
const LONGEST_PAUSE = 3;

/** Milliseconds after which a caller gives up. */
const PATIENCE_MS = number('PATIENCE_MS', 3 * SLO.latencyMs);

// Outcomes: `good` (success within the objective's latency), `late`, `shed` (by the proxy), `error`.
const latency = new Trend('caller_latency', true);
const admittedLatency = new Trend('admitted_latency', true);
const good = new Rate('good');
const goodCount = new Counter('good_requests');
const succeeded = new Rate('succeeded');
const shed = new Rate('shed');
const shedCount = new Counter('shed_requests');
const failed = new Rate('failed');
const attempts = new Counter('attempts');

/**
 * Options of a test: `phases` run one after the other, each at a rate that does not wait for answers.
 *
 * A phase is `{name, seconds, load}` with `load` in multiples of the capacity; `exec` names the function that sends
 * one request (by default the test's `request`), `switchTo` a fault that begins with the phase, and `longestMs` how
 * long a request takes with its retries (by default as long as a caller has patience). `thresholds` are k6's; an environment
 * may replace some of the test `name`. That everything was sent that was to be sent is one more threshold: a test that
 * fell behind shows nothing.
 */
export function options(phases, thresholds, name) {
  const scenarios = {};
  let start = 0;
  let arrivals = 0;
  for (const phase of phases) {
    const loads = phase.loads || [{ load: phase.load, exec: phase.exec || 'request', name: '' }];
    for (const { load, exec, name } of loads) {
      const rate = Math.max(1, Math.round(load * CAPACITY));
      arrivals += rate * phase.seconds;
      scenarios[name ? `${phase.name}_${name}` : phase.name] = {
        executor: 'constant-arrival-rate',
        exec,
        rate,
        timeUnit: '1s',
        startTime: `${start}s`,
        duration: `${phase.seconds}s`,
        preAllocatedVUs: users(rate, phase.longestMs || PATIENCE_MS),
        gracefulStop: '5s',
        tags: { phase: phase.name },
      };
    }
    if (phase.switchTo) {
      scenarios[`switch_to_${phase.switchTo}_for_${phase.name}`] = {
        executor: 'shared-iterations',
        exec: 'switchFault',
        env: { FAULT: phase.switchTo },
        iterations: 1,
        vus: 1,
        startTime: `${start}s`,
        maxDuration: '5s',
        tags: { phase: phase.name },
      };
    }
    start += phase.seconds;
  }
  return {
    scenarios,
    discardResponseBodies: true,
    summaryTrendStats: ['avg', 'med', 'p(75)', 'p(90)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
    thresholds: {
      ...thresholds,
      dropped_iterations: [`count<=${Math.ceil(0.01 * arrivals)}`],
      ...ofEnvironment(name),
    },
    ...(setting('INSECURE') === 'true' ? { insecureSkipTLSVerify: true } : {}),
  };
}

/** The thresholds that the environment has for this test; they replace those of the same metric. */
function ofEnvironment(name) {
  return { ...ENVIRONMENT.thresholds.all, ...ENVIRONMENT.thresholds[name] };
}

/** Users beyond those that are under way: on a busy machine it takes a moment until one whose request is over is free. */
const SPARE = 1.2;

/** Users for a rate: as many as are under way when each request takes so long, and some to spare. */
function users(rate, milliseconds) {
  return Math.ceil((SPARE * rate * milliseconds) / 1000) + 10;
}

/** Thresholds of a phase of `seconds` in which everything can be served: the objective itself. */
export function inObjective(phase) {
  const percentile = (SLO.quantile * 100).toFixed(3).replace(/\.?0+$/, '');
  return {
    [`succeeded{phase:${phase}}`]: [`rate>=${SLO.success}`],
    [`admitted_latency{phase:${phase}}`]: [`p(${percentile})<=${SLO.latencyMs}`],
  };
}

/** Threshold on good answers in a phase: at least `share` of what `load` times the capacity would be. */
export function goodput(phase, seconds, share) {
  return { [`good_requests{phase:${phase}}`]: [`count>=${Math.floor(share * CAPACITY * seconds)}`] };
}

/**
 * Sends one request and notes what became of it.
 *
 * `criticality` goes into the header, `retries` is how often the caller tries again after anything but success,
 * whatever the answer advises, with an exponential pause with full jitter, from `pauseMs` on.
 */
export function send({ criticality = '', retries = 0, pauseMs = 50 } = {}) {
  const begun = Date.now();
  let answer = attempt(criticality, 1);
  let number = 1;
  while (answer.outcome !== 'success' && number <= retries) {
    sleep((Math.random() * pauseMs * 2 ** Math.min(number - 1, LONGEST_PAUSE)) / 1000);
    number += 1;
    answer = attempt(criticality, number);
  }
  const elapsed = number === 1 ? answer.ms : Date.now() - begun;
  note(answer, elapsed, number, criticality || 'none');
  return answer;
}

function attempt(criticality, number) {
  const headers = { ...HEADERS };
  if (criticality) headers[CRITICALITY_HEADER] = criticality;
  if (number > 1) headers['x-envoy-attempt-count'] = `${number}`;
  const response = http.request(METHOD, `${BASE_URL}${PATH}`, BODY, { headers, timeout: PATIENCE_MS, tags: { name: 'request' } });
  return { ms: response.timings.duration, ...judge(response) };
}

/** The outcome of one attempt, and why it was shed. */
function judge(response) {
  if (response.status >= 200 && response.status < 400) return { outcome: 'success', reason: '' };
  const details = header(response, DETAILS_HEADER);
  if (details.startsWith('tidegate_shed_')) return { outcome: 'shed', reason: details.slice('tidegate_shed_'.length) };
  // Where the policy names shed.reasonHeader.
  const reason = header(response, REASON_HEADER);
  if (reason) return { outcome: 'shed', reason };
  // A proxy that does not show its response code details still tells callers not to try again.
  if (header(response, 'x-envoy-ratelimited')) return { outcome: 'shed', reason: 'unnamed' };
  const other = ['reached_concurrency_limit', 'denied_by_admission_control', 'upstream_reset_before_response_started{overflow'];
  if (other.some((start) => details.startsWith(start))) return { outcome: 'shed', reason: 'envoy' };
  return { outcome: 'error', reason: '' };
}

/** k6 writes names of headers in canonical form: X-Envoy-Ratelimited. */
function header(response, name) {
  const canonical = name.toLowerCase().replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase());
  return response.headers[canonical] || '';
}

function note(answer, ms, number, criticality) {
  const isSuccess = answer.outcome === 'success';
  const isGood = isSuccess && ms <= SLO.latencyMs;
  const isShed = answer.outcome === 'shed';
  const outcome = isSuccess && !isGood ? 'late' : isGood ? 'good' : answer.outcome;
  const tags = { criticality, outcome, ...(isShed ? { reason: answer.reason } : {}) };
  const of = { criticality };
  latency.add(ms, tags);
  good.add(isGood, of);
  succeeded.add(isSuccess, of);
  shed.add(isShed, of);
  failed.add(!isSuccess && !isShed, of);
  attempts.add(number, of);
  if (isGood) goodCount.add(1, of);
  if (isSuccess) admittedLatency.add(ms, of);
  if (isShed) shedCount.add(1, tags);
}

/** Requests that were good, late, shed or failed in a phase, from the data of a summary. */
export function goodIn(data, phase) {
  const metric = data.metrics[`good{phase:${phase}}`];
  return metric ? { good: metric.values.passes, all: metric.values.passes + metric.values.fails } : { good: 0, all: 0 };
}

/** Switches to the fault that the scenario names, or asks on the terminal that somebody do it. */
export function switchFault() {
  const fault = __ENV.FAULT;
  if (!FAULT_URL) {
    console.warn(`FAULT_URL is not set: switch the upstream to "${fault}" now, by whatever means there are`);
    return;
  }
  const response = http.put(`${FAULT_URL}/${fault}`, null, { tags: { name: 'fault' } });
  if (!check(response, { 'fault is switched': (r) => r.status === 200 })) {
    fail(`PUT ${FAULT_URL}/${fault}: found status ${response.status}, expected 200`);
  }
}
