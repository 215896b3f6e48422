import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allOperations, allOverviews } from '../support/account-api.ts';
import { LOG_FOLDER } from '../support/gateway.ts';
import { email, LEAK_MARK, secret, SECRET_FORMS } from '../support/secrets.ts';

/** Looked for outside of ids and hashes, where sixteen digits in a row turn up by chance. */
const CARD = /(?<![\d.])\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}(?!\d)/;

/** Contract section 9; then those of lines that are not about a request. */
const FIELDS: ReadonlySet<string> = new Set(
  `time level msg request_id trace_id method route status duration_ms operation account cache upstream_calls upstream_ms
  client code reason outcome failed stale legs field count fault signal url host errno upstream_status`.split(/\s+/),
);

/** Routes are templates: a path or a query that a client wrote is none. */
const ROUTES: ReadonlySet<string> = new Set([
  ...allOperations.map(({ path }) => path),
  ...allOverviews.map(({ path }) => path),
  '/problems',
  '/problems/{code}',
  '/',
  '(none)',
]);
const ROUTE_OF_OURS =
  /^\/(?:bff\/v1|docs)(?:\/[a-z.-]+)*$|^\/(?:openapi\.json|livez|readyz|metrics|console(?:\/[a-zA-Z.]+)?)$/;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

interface Line extends Readonly<Record<string, unknown>> {
  readonly route?: string;
  readonly request_id?: string;
}

/** Of tables and handlers that tests have of their own: words and parameters, no values of them. */
const ROUTE_OF_TESTS = /^\/(?:own|v1|book|author|bff\/v1|api\/v2\/badge)(?:\/(?:[a-z-]+|\{\w+\}|:\w+|\*))*\/?$/;

/** What is wrong with a line that was logged; nothing with a good one. */
function faultsOf(text: string): string[] {
  const line = JSON.parse(text) as Line;
  const { route = '(none)', request_id: requestId = '-' } = line;
  const withoutIds = JSON.stringify({ ...line, request_id: '', trace_id: '', account: '' });
  const faults = {
    ...Object.fromEntries(Object.entries(SECRET_FORMS).map(([what, form]) => [what, form.test(text)])),
    'a card number': CARD.test(withoutIds),
    'a field that nobody listed': Object.keys(line).some((name) => !FIELDS.has(name)),
    'a route that is none': !ROUTES.has(route) && !ROUTE_OF_OURS.test(route) && !ROUTE_OF_TESTS.test(route),
    'a request id of another form': !REQUEST_ID.test(requestId),
  };
  return Object.entries(faults).flatMap(([what, isThere]) => (isThere ? [what] : []));
}

/** Of what the console shows, and of what is in it, at any depth. */
const SHOWN: ReadonlySet<string> = new Set(
  `at version startedAt slowMs circuit since probeAt plots stepMs status duration p50 p95 cache failures requests number isBad
  accounts accountsSince unknown id ms operation account code reason sections fresh failed stale legs name sums phases phase leg
  start end outcome joined requestId hasKey`.split(/\s+/),
);

/** Objects whose members are named by what they count. */
const BY_NAME: ReadonlySet<string> = new Set(['status', 'cache', 'failures', 'sums']);

/** Ids and hashes, where digits in a row turn up by chance. */
const IDS: ReadonlySet<string> = new Set([
  'id',
  'requestId',
  'joined',
  'account',
  'at',
  'since',
  'probeAt',
  'startedAt',
]);

function namesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(namesIn);
  return Object.entries(value).flatMap(([name, inner]) => [name, ...(BY_NAME.has(name) ? [] : namesIn(inner))]);
}

/** What is wrong with what a console shows. */
function faultsOfShown(text: string): string[] {
  const withoutIds = JSON.stringify(JSON.parse(text), (name, value: unknown) => (IDS.has(name) ? '' : value));
  const faults = {
    ...Object.fromEntries(Object.entries(SECRET_FORMS).map(([what, form]) => [what, form.test(text)])),
    'a card number': CARD.test(withoutIds),
    'an address': text.includes('127.0.0.1'),
    'a member that nobody listed': namesIn(JSON.parse(text)).some((name) => !SHOWN.has(name)),
  };
  return Object.entries(faults).flatMap(([what, isThere]) => (isThere ? [what] : []));
}

/** Whole lines of JSON; runs beside this one may still be writing. Else these are banners, and what tools print. */
function linesOf(file: string): string[] {
  try {
    const lines = readFileSync(join(LOG_FOLDER, file), 'utf8').split('\n').slice(0, -1);
    return lines.filter((line) => line.startsWith('{') && line.endsWith('}'));
  } catch {
    return []; // cleaned away by a run that began just now
  }
}

const GOOD = {
  level: 'info',
  time: '2026-06-09T18:50:08.101Z',
  request_id: '0745b854-62df-4c6d-899a-45eab17f6bb9',
  trace_id: '12345678123456781234567812345678',
  method: 'GET',
  route: '/api/v2/apikey/{id}/',
  status: 404,
  duration_ms: 1.5,
  operation: 'getApiKey',
  account: 'HcyEx-VSc_Nlv2N75QewAMLFLoAeV8sS0KnLH0aKUW0',
  cache: 'bypass',
  upstream_calls: 1,
  upstream_ms: 1.2,
  code: 'not_found',
  msg: 'request',
};

describe('what looks for secrets', () => {
  it('lets a line be that holds none', () => {
    expect(faultsOf(JSON.stringify(GOOD))).toEqual([]);
    expect(faultsOf('{"level":"info","url":"http://127.0.0.1:8787","msg":"listening"}')).toEqual([]);
  });

  it.each([
    ['a key', { account: secret() }],
    ['a key in base64', { fault: Buffer.from(`Token ${secret()}`).toString('base64') }],
    ['a key in lower case', { code: `pk-${LEAK_MARK.toLowerCase()}` }],
    ['a header', { fault: 'authorization: Token 0123456789abcdef' }],
    ['a key of the sandbox', { account: 'sandbox-paid-key' }],
    ['a token of the sandbox', { fault: 'TypeError sandbox-token-100001' }],
    ['a client secret of the sandbox', { code: 'sandbox_verification_100001_secret' }],
    ['a marked e-mail address', { msg: email() }],
    ['any e-mail address', { msg: 'affiliate@wallet.example' }],
    ['a card number', { fault: '4242 4242 4242 4242' }],
    ['a query', { route: '/api/v2/subscription/?plan_id=3' }],
    ['a path that a client wrote', { route: '/api/v2/apikey/12/' }],
    ['a request id that a client made up', { request_id: 'a b' }],
    ['a field that nobody listed', { query: 'x' }],
  ])('finds %s', (_, fields) => {
    expect(faultsOf(JSON.stringify({ ...GOOD, ...fields }))).not.toEqual([]);
  });
});

const SHOWN_DATA = {
  at: 1,
  version: '0.3.0',
  plots: { status: { '2xx': [3] }, failures: { tls: [1] } },
  requests: [
    { id: GOOD.request_id, operation: 'getSubscription', legs: [{ name: 'getSubscription', sums: { slot: 3 } }] },
  ],
};

describe('what looks for secrets in what consoles show', () => {
  it('lets data be that holds none', () => {
    expect(faultsOfShown(JSON.stringify(SHOWN_DATA))).toEqual([]);
  });

  it.each([
    ['a key', { requests: [{ code: secret() }] }],
    ['an e-mail address', { requests: [{ code: email() }] }],
    ['a card number', { requests: [{ operation: '4242424242424242' }] }],
    ['an address', { requests: [{ code: '127.0.0.1' }] }],
    ['a member that nobody listed', { requests: [{ query: 'x' }] }],
  ])('finds %s', (_, more) => {
    expect(faultsOfShown(JSON.stringify({ ...SHOWN_DATA, ...more }))).not.toEqual([]);
  });
});

const isOfConsole = (file: string) => file.endsWith('.console');

describe('the logs of the whole run', () => {
  const files = readdirSync(LOG_FOLDER);
  const told = files.filter(isOfConsole).flatMap((file) => linesOf(file).map((line) => ({ file, line })));
  const logs = files.filter((file) => !isOfConsole(file));
  const lines = logs.flatMap((file) => linesOf(file).map((line) => ({ file, line })));

  it('are there, of the gateways in the tests and of those in processes of their own', () => {
    expect(lines.length).toBeGreaterThan(1_000);
  });

  it('hold no secret, and nothing that is not listed', () => {
    const faults = lines.flatMap(({ file, line }) => faultsOf(line).map((fault) => `${fault} in ${file}: ${line}`));
    expect(faults.slice(0, 20)).toEqual([]);
  });

  it('hold what consoles have shown, and that has no secret in it either', () => {
    expect(told.length).toBeGreaterThan(10);
    const faults = told.flatMap(({ file, line }) => faultsOfShown(line).map((fault) => `${fault} in ${file}: ${line}`));
    expect(faults.slice(0, 20)).toEqual([]);
  });
});
