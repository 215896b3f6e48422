import { expect } from 'vitest';
import { call, type CallOptions } from '../../support/http.ts';
import { leaksIn, secret } from '../../support/secrets.ts';
import { eventually, fail, type Scenario, type Stage, visit } from '../stage.ts';

/** What the gateway has sent upstream with this `X-Request-Id`. */
async function headersSent({ sandbox }: Stage, id: string): Promise<Readonly<Record<string, string>>[]> {
  const { json } = await call(sandbox.url, { path: '/_sandbox/calls' });
  const calls = json as { headers: Record<string, string> }[];
  return calls.map(({ headers }) => headers).filter((headers) => headers['x-request-id'] === id);
}

/** Of the connection, and the one that Cloudflare puts on what a worker sends. */
const OF_THE_RUNTIME = ['host', 'connection', 'content-length', 'cf-worker'];

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';

const ALWAYS = ['level', 'time', 'request_id', 'trace_id', 'method', 'route', 'status', 'duration_ms'];
const UPSTREAM = ['upstream_calls', 'upstream_ms', 'client', 'msg'];
const PASSED = ['operation', 'account', 'cache'];

interface Telling {
  readonly what: string;
  readonly options: CallOptions;
  readonly fault?: Readonly<Record<string, unknown>>;
  /** Besides what every line has. */
  readonly fields: readonly string[];
  readonly says: Readonly<Record<string, unknown>>;
}

const TELLINGS: readonly Telling[] = [
  {
    what: 'a read',
    options: { path: '/api/v2/subscription/' },
    fields: PASSED,
    says: { method: 'GET', status: 200, operation: 'getSubscription', cache: 'miss', upstream_calls: 1 },
  },
  {
    what: 'a write',
    options: { path: '/api/v2/apikey/', body: { label: secret('label') } },
    fields: PASSED,
    says: { method: 'POST', status: 201, operation: 'createApiKey', cache: 'method', upstream_calls: 1 },
  },
  {
    what: 'an overview',
    options: { path: '/bff/v1/account-overview' },
    fields: PASSED,
    says: { route: '/bff/v1/account-overview', status: 200, cache: 'miss', upstream_calls: 4 },
  },
  {
    what: 'a stream',
    options: { path: '/bff/v1/account-overview', headers: { accept: 'application/x-ndjson' } },
    fields: PASSED,
    says: { status: 200, cache: 'stream', upstream_calls: 4 },
  },
  {
    what: 'a batch',
    options: {
      path: '/bff/v1/batch',
      body: { requests: [{ id: 'a', path: `/api/v2/notification/?x=${secret('query')}` }] },
    },
    fields: ['operation', 'account'],
    says: { status: 200, operation: 'batch', upstream_calls: 1 },
  },
  {
    what: 'a refusal of the gateway',
    options: { path: `/api/v2/subuser/1081/?plan_id=${secret('query')}` },
    fields: ['operation', 'account', 'code'],
    says: { status: 400, code: 'validation_failed', upstream_calls: 0 },
  },
  {
    what: 'an unknown path',
    options: { path: `/api/v2/${secret('path')}/` },
    fields: ['code'],
    says: { status: 404, code: 'unknown_endpoint', upstream_calls: 0 },
  },
  {
    what: 'trouble of the upstream',
    options: { path: '/api/v2/idverification/start/', body: {} },
    fault: { operation: 'startIdVerification', status: 500, body: { detail: secret('detail') } },
    fields: [...PASSED, 'code', 'reason', 'outcome'],
    says: {
      level: 'error',
      reason: 'status',
      outcome: 'unknown',
      status: 502,
      code: 'upstream_bad_response',
      upstream_calls: 1,
    },
  },
];

/** All of it but what `wrangler dev` says itself of each request, with its path. */
const printedBy = ({ log }: Stage) =>
  (log.stdout() + log.stderr())
    .split('\n')
    .filter((line) => !line.startsWith('[wrangler:info]'))
    .join('\n');

const logScenarios = TELLINGS.map(({ what, options, fault, fields, says }): Scenario => ({
  name: `the log has one JSON line for ${what}, with the same fields on every runtime and no secret`,
  async run(stage) {
    const visitor = await visit(stage, 'paid');
    if (fault) await fail(stage, fault);
    const id = visitor.nextId();
    await visitor.call({ ...options, headers: { ...options.headers, cookie: `a=${secret('cookie')}` } });
    const linesOfIt = () => stage.log.records().filter((line) => line['request_id'] === id);
    await stage.log.until(() => (linesOfIt().length > 0 ? true : undefined));
    const [line, ...more] = linesOfIt();
    expect([line, more]).toMatchObject([{ level: 'info', msg: 'request', ...says }, []]);
    expect(Object.keys(line ?? {}).toSorted()).toEqual([...ALWAYS, ...fields, ...UPSTREAM].toSorted());
    const printed = printedBy(stage);
    expect(printed).not.toContain(visitor.token);
    expect(leaksIn(printed)).toEqual([]);
  },
}));

/** What the gateway tells others: the upstream who asks, the operator what was asked. */
export const tellingScenarios: readonly Scenario[] = [
  {
    name: 'the upstream gets the request id, the trace continued, and no other header of the client',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const id = visitor.nextId();
      await visitor.call({
        path: '/api/v2/subscription/',
        headers: {
          traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`,
          tracestate: 'vendor=1',
          cookie: `session=${secret('cookie')}`,
          'x-forwarded-for': '203.0.113.250',
          'x-subuser': '1081',
          'accept-language': 'de',
          'x-other': 'x',
        },
      });
      const [headers = {}, ...more] = await headersSent(stage, id);
      expect(more).toEqual([]);
      const { traceparent = '', ...others } = headers;
      expect(traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`));
      expect(traceparent).not.toContain(PARENT_ID);
      expect(others).toMatchObject({ 'x-request-id': id, tracestate: 'vendor=1', accept: 'application/json' });
      const names = Object.keys(headers).filter((name) => !OF_THE_RUNTIME.includes(name));
      expect(names.toSorted()).toEqual([
        'accept',
        'authorization',
        'traceparent',
        'tracestate',
        'user-agent',
        'via',
        'x-request-id',
      ]);
    },
  },
  {
    name: 'a request that has been through the gateway before is a 508',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const id = visitor.nextId();
      await visitor.call({ path: '/api/v2/subscription/' });
      const [{ via = '' } = {}] = await headersSent(stage, id);
      expect(via).toMatch(/^1\.1 portico-[\w-]{12}$/);
      const read = { path: '/api/v2/subscription/' };
      const write = { path: '/api/v2/apikey/', body: {} };
      for (const options of [read, { path: '/bff/v1/account-overview' }, write]) {
        const again = visitor.nextId();
        const { status, json } = await visitor.call({ ...options, headers: { via: `1.0 fred, ${via}` } });
        expect([status, json]).toMatchObject([508, { code: 'loop_detected' }]);
        expect(await headersSent(stage, again)).toEqual([]);
      }
    },
  },
  {
    name: 'each leg of an overview carries the request id and the trace, each with a parent of its own',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const id = visitor.nextId();
      const headers = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` };
      await visitor.call({ path: '/bff/v1/billing-overview', headers });
      const sent = (await headersSent(stage, id)).map(({ traceparent = '' }) => traceparent.split('-'));
      expect(sent.map(([, trace]) => trace)).toEqual(Array.from({ length: 4 }, () => TRACE_ID));
      expect(new Set([PARENT_ID, ...sent.map(([, , parent]) => parent)]).size).toBe(5);
    },
  },
  ...logScenarios,
  {
    name: 'what is renewed behind an answer is asked for with the id of that answer',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const path = '/api/v2/subuser/1082/';
      await visitor.call({ path });
      const id = visitor.nextId();
      const stale = await visitor.call({ path });
      expect(stale.headers['cache-status']).toMatch(/^portico; hit; ttl=(-\d+|0)$/);
      await eventually(async () => expect(await headersSent(stage, id)).toHaveLength(1));
    },
  },
];
