import { describe, expect, test } from 'vitest';
import { createClient, type Portico, PorticoProblem, streamOverview } from '../../client/src/index.ts';
import { legOf, openOverviews, overviewTable } from '../overviews/helpers.ts';
import { barrier, bytes, close, hold, json, reply, type Step } from '../support/scripted-upstream.ts';
import { gistOf, openStandIn, passPauses, problem, problemOf, thrownBy } from './helpers.ts';

const account = overviewTable.map(([, overview]) => overview).find(({ id }) => id === 'getAccountOverview')!;

async function openAccount() {
  const world = await openOverviews();
  return { ...world, portico: createClient({ url: world.gateway.url, token: world.token }) };
}

interface Line {
  readonly section: string;
  readonly state?: string;
  readonly data?: unknown;
  readonly error?: { readonly code: string };
}

/** What comes until the stream ends, and what it ends with. */
async function collected(lines: AsyncIterable<unknown>): Promise<{ lines: Line[]; thrown?: unknown }> {
  const all: Line[] = [];
  try {
    for await (const line of lines) all.push(line as Line);
    return { lines: all };
  } catch (thrown) {
    return { lines: all, thrown };
  }
}

const bySection = (lines: readonly Line[]) => Object.fromEntries(lines.map((line) => [line.section, line]));

describe('of the gateway', () => {
  test('sections come as they are there, the one that is held back last', async () => {
    const { portico, on } = await openAccount();
    const gate = barrier();
    const leg = legOf(account, 'notifications');
    on(leg, reply(hold(gate), json(200, leg.upstream)));
    const stream = streamOverview(portico, 'getAccountOverview');
    const first = [await stream.next(), await stream.next(), await stream.next()];
    const sections = first.map(({ value }) => (value as Line).section);
    expect(new Set(sections)).toEqual(new Set(['subscription', 'payment_method', 'referral_config']));
    gate.release();
    expect((await stream.next()).value).toMatchObject({
      section: 'notifications',
      state: 'fresh',
      data: JSON.parse(leg.text) as object,
    });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  test('they are what the whole overview has', async () => {
    const { portico } = await openAccount();
    const { lines, thrown } = await collected(streamOverview(portico, 'getAccountOverview'));
    expect(thrown).toBeUndefined();
    const { data } = await portico.getAccountOverview();
    expect(Object.fromEntries(lines.map(({ section, data: value }) => [section, value]))).toEqual(data);
  });

  test('those that were asked for are there, with the fields that were asked for', async () => {
    const { portico, upstream } = await openAccount();
    const asked = { sections: ['subscription', 'referral_config'], fields: { subscription: ['plan'] } } as const;
    const { lines } = await collected(streamOverview(portico, 'getAccountOverview', asked));
    const { subscription, referral_config, ...others } = bySection(lines);
    expect(Object.keys(subscription!.data as object)).toEqual(['plan']);
    expect(Object.keys(referral_config!.data as object).length).toBeGreaterThan(1);
    expect(others).toEqual({});
    expect(upstream.calls).toHaveLength(2);
  });

  test('one that fails says why, and the others are there', async () => {
    const { portico, on } = await openAccount();
    on(legOf(account, 'notifications'), json(404, {}));
    const { lines, thrown } = await collected(streamOverview(portico, 'getAccountOverview'));
    expect(thrown).toBeUndefined();
    expect(lines).toHaveLength(4);
    const { notifications } = bySection(lines);
    expect(notifications).toMatchObject({ state: 'failed', error: { code: 'not_found' } });
    expect(notifications).not.toHaveProperty('data');
  });

  test('a required one that fails is thrown as its problem, before there is any line', async () => {
    const { portico, on } = await openAccount();
    on(legOf(account, 'subscription'), json(404, {}));
    const { lines, thrown } = await collected(streamOverview(portico, 'getAccountOverview'));
    expect(lines).toEqual([]);
    expect(thrown).toBeInstanceOf(PorticoProblem);
    expect(thrown).toMatchObject({ code: 'not_found', status: 404, section: 'subscription' });
  });

  test('a loop that is left ends the request: the gateway asks no further', async () => {
    const { portico, on, upstream } = await openAccount();
    const gate = barrier();
    const leg = legOf(account, 'notifications');
    on(leg, hold(gate));
    for await (const line of streamOverview(portico, 'getAccountOverview')) {
      expect(line.state).toBe('fresh');
      await gate.reached;
      break;
    }
    await upstream.disconnected(upstream.callsTo(`GET ${leg.path}`)[0]!);
  });
});

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n';
const chunk = (text: string) => bytes(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
const END = bytes('0\r\n\r\n');
const LINE = '{"section":"subscription","state":"fresh","data":{"plan":1}}\n';
const LAST = '{"complete":true}\n';
const ONE = { section: 'subscription', state: 'fresh', data: { plan: 1 } };

/** A stream of a gateway that does what the test says once it has begun. */
async function openStream(...steps: Step[]) {
  const { gateway, portico } = await openStandIn();
  gateway.on('GET /bff/v1/account-overview', reply(bytes(HEAD), ...steps));
  return { gateway, portico, read: (of: Portico = portico) => collected(streamOverview(of, 'getAccountOverview')) };
}

describe('that is cut off', () => {
  test.for([
    ['in the middle of a line', [chunk(LINE + LINE.slice(0, 20)), close()]],
    ['between lines', [chunk(LINE), close()]],
    ['before its last line, and ends well', [chunk(LINE), END]],
    ['in its last line', [chunk(LINE + LAST.slice(0, 5)), END]],
    ['before the end of its last line', [chunk(LINE + LAST.trimEnd()), END]],
    ['by a line that is no JSON', [chunk(`${LINE}<html>\n`), END]],
    ['by a line that is no object', [chunk(`${LINE}null\n`), END]],
  ] as const)('%s throws, after what has come', async ([, steps]) => {
    const { gateway, read } = await openStream(...steps);
    const { lines, thrown } = await read();
    expect(lines).toEqual([ONE]);
    expect(gistOf(await problemOf(Promise.reject(thrown)))).toBe('connection_failed 0');
    expect(thrown).toMatchObject({ retryable: true, outcome: undefined });
    expect(gateway.calls).toHaveLength(1);
  });

  test('before any line throws too', async () => {
    const { read } = await openStream(END);
    expect(await read()).toMatchObject({ lines: [], thrown: { code: 'connection_failed' } });
  });
});

test('empty lines are passed over, and what comes after the last line counts for nothing', async () => {
  const { read } = await openStream(chunk(`\n${LINE}\n${LAST}nonsense\n`), END);
  expect(await read()).toEqual({ lines: [ONE] });
});

test('it ends with its body, so that the next one has the same connection', async () => {
  const gate = barrier();
  const { gateway, portico } = await openStream(chunk(LINE + LAST), hold(gate), END);
  for (let time = 0; time < 2; time += 1) {
    const stream = streamOverview(portico, 'getAccountOverview');
    expect((await stream.next()).value).toEqual(ONE);
    const end = stream.next();
    await new Promise(setImmediate); // it has seen the last line
    gate.release();
    expect(await end).toEqual({ done: true, value: undefined });
    await new Promise(setImmediate); // fetch has put the connection back
  }
  expect([gateway.calls.length, gateway.connections()]).toEqual([2, 1]);
});

test('whoever has its last line misses nothing where it is cut off after that', async () => {
  const { read } = await openStream(chunk(LINE + LAST), close());
  expect(await read()).toEqual({ lines: [ONE] });
});

test('it asks for lines, and keeps the headers of the caller', async () => {
  const { gateway, portico } = await openStream(chunk(LAST), END);
  const headers = { 'X-Request-Id': 'mine' };
  await collected(
    streamOverview(portico, 'getAccountOverview', { sections: ['subscription'] }, { headers, fresh: true }),
  );
  const [{ target, headers: sent }] = gateway.calls as [(typeof gateway.calls)[number]];
  expect(target).toBe('/bff/v1/account-overview?sections=subscription');
  expect(sent).toMatchObject({ accept: 'application/x-ndjson', 'x-request-id': 'mine', 'cache-control': 'no-cache' });
});

test('a loop that is left hangs up', async () => {
  const gate = barrier();
  const { gateway, portico } = await openStream(chunk(LINE), hold(gate));
  for await (const line of streamOverview(portico, 'getAccountOverview')) {
    expect(line).toEqual(ONE);
    break;
  }
  await gateway.disconnected(gateway.calls[0]!);
});

test('an error in the loop is thrown as it is, and hangs up', async () => {
  const gate = barrier();
  const error = new Error('of the page');
  const { gateway, portico } = await openStream(chunk(LINE), hold(gate));
  const looped = async () => {
    for await (const _ of streamOverview(portico, 'getAccountOverview')) throw error;
  };
  expect(await thrownBy(looped())).toBe(error);
  await gateway.disconnected(gateway.calls[0]!);
});

test('an abort between lines rejects with its reason, and hangs up', async () => {
  const gate = barrier();
  const { gateway, portico } = await openStream(chunk(LINE), hold(gate));
  const controller = new AbortController();
  const reason = new Error('left');
  const stream = streamOverview(portico, 'getAccountOverview', {}, { signal: controller.signal });
  expect((await stream.next()).value).toEqual(ONE);
  const next = thrownBy(stream.next());
  await gate.reached;
  controller.abort(reason);
  expect(await next).toBe(reason);
  await gateway.disconnected(gateway.calls[0]!);
  expect(gateway.calls).toHaveLength(1);
});

test('a problem in place of a stream is thrown as it is', async () => {
  passPauses();
  const { gateway, portico } = await openStandIn();
  gateway.on(() => true, problem(403, 'account_suspended'));
  expect((await problemOf(streamOverview(portico, 'getAccountOverview').next())).code).toBe('account_suspended');
});
