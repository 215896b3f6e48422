import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { EXPECTED } from './expected.ts';
import { type Fault, faults } from './faults.ts';
import { gist, MARKS, READ, WRITE } from './helpers.ts';
import { startBareWorker } from '../runtime/bare-worker.ts';
import { killAll } from '../runtime/node-gateway.ts';
import { exampleInput } from '../support/examples.ts';
import { call } from '../support/http.ts';
import { bodyOf, goodAnswer, isCallTo, markOf, pathOf } from '../support/marked.ts';
import { perCall, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

/** The platform says of what is not HTTP only that the connection was lost. */
const LOST = { read: [502, 'upstream_unreachable'], isRetried: true } as const;

/** A few that matter where the platform brings an HTTP of its own, and what is otherwise there. */
const CHOSEN: Readonly<Record<string, Partial<Fault>>> = {
  'reset before an answer': {},
  hang: {},
  'body drip': {},
  'reset in mid body': {},
  'short body': {},
  'extra bytes after the length': {},
  'two lengths': LOST,
  'garbage line': LOST,
  101: {},
  'interim answers before it': {},
  '204 with a body': {},
  '50 MB': {},
  'endless chunks': {},
  'gzip bomb': {},
  '100,000 levels deep': {},
  'HTML with 200': {},
  'invalid UTF-8': {},
  '__proto__ keys': {},
};

/** So many good answers behind each fault that the circuit never opens. */
const GOOD_BETWEEN = 6;

const DEADLINE_MS = 1_000;

let upstream: ScriptedUpstream;
let url: string;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = { UPSTREAM_TIMEOUT_MS: String(DEADLINE_MS), RATE_LIMIT_PER_MINUTE: '0' };
  ({ url } = await startBareWorker({ UPSTREAM_BASE_URL: upstream.url, ...env }));
});

afterAll(async () => {
  await killAll();
  await upstream.close();
  upstream.assertNoUnexpected();
});

const ask = (id: OperationId, token: string) => {
  const { method, body } = exampleInput(id);
  return call(url, { method, path: pathOf(id), token, ...(body !== undefined && { body }) });
};

const answerWell = (mark: number) =>
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, mark)),
  );

/** A retry has a budget, which all faults here draw on: how often a read was tried is for the matrix to say. */
const withoutCount = (cell: string) => cell.replace(/ ×\d+$/, '');

describe.each(Object.entries(CHOSEN))('on workerd, %s', (name, differs) => {
  const fault: Fault = { ...faults.find((one) => one.name === name)!, ...differs };

  test.each([
    ['a read gets', READ, EXPECTED.read(fault), 3],
    ['a purchase, which is sent once, gets', WRITE, EXPECTED.purchase(fault), 1],
  ] as const)('%s the documented answer, and the next account its own', async (_, id, expected, mostCalls) => {
    const { what } = fault;
    if (typeof what === 'string') throw new Error(`${name} has no bytes`);
    answerWell(MARKS.before).on(isCallTo(id), what(bodyOf(id, MARKS.during)));
    const callsBefore = upstream.calls.length;
    const begunAt = performance.now();
    const answer = await ask(id, secret());
    expect(performance.now() - begunAt).toBeLessThan(DEADLINE_MS + 400);
    expect(gist(answer)).toBe(withoutCount(expected));
    const struck = upstream.calls.slice(callsBefore);
    expect(struck.length).toBeGreaterThan(0);
    expect(struck.length).toBeLessThanOrEqual(fault.isRetried ? mostCalls : 1);

    answerWell(MARKS.after);
    for (let asked = 0; asked < GOOD_BETWEEN; asked++) {
      const good = await ask(READ, secret());
      expect([good.status, markOf(good.text)]).toEqual([200, MARKS.after]);
    }
    const clean = upstream.calls.slice(-GOOD_BETWEEN).map(({ socket }) => socket);
    if (fault.endsConnection) expect(clean).not.toContain(struck[0]?.socket);
  });
});
