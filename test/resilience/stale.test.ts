import { describe, expect, test } from 'vitest';
import { hit } from '../cache/helpers.ts';
import { expectProblem } from '../http/problem.ts';
import { overviewTable } from '../overviews/helpers.ts';
import { openCircuit, openTimedWorld, PLAIN, type TimedWorld } from './helpers.ts';
import { settled } from './layer.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { callOf, markOf, pathOf } from '../support/marked.ts';
import { barrier, hold, json, reset } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds, policyOf, invalidatedReads, writeIds } from '../support/table.ts';

/** What keeps an answer away, and what a client is told who has no copy. */
interface Trouble {
  readonly env?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly code: string;
  /** Every write is tried with it; what a write leaves of the copies does not depend on the trouble. */
  readonly isThorough?: true;
  /** Time has to pass before an answer is there. */
  readonly isSlow?: true;
  /** Brings it about for the world's account; what comes back ends it. */
  readonly begin: (world: TimedWorld) => Promise<() => Promise<unknown>>;
}

const over = async () => undefined;

/** So many good calls, of others, that as many failures as an account has copies do not open the circuit. */
const keepCircuitClosed = ({ ask }: TimedWorld) =>
  Promise.all(Array.from({ length: 2 * cachedIds.length }, () => ask(PLAIN, { token: secret() })));

/** All the time that a request may wait for anything of ours passes while it is answered. */
const passing = async <T>({ clock }: TimedWorld, work: Promise<T>): Promise<T> => {
  const answered = new AbortController();
  const { signal } = answered;
  void settled(work).then(() => answered.abort());
  while (!signal.aborted) {
    await new Promise(setImmediate);
    clock.advance(signal.aborted ? 0 : 20);
  }
  return work;
};

const TROUBLES: readonly (readonly [string, Trouble])[] = [
  [
    'a failure',
    {
      status: 502,
      code: 'upstream_bad_response',
      isThorough: true,
      async begin(world) {
        await keepCircuitClosed(world);
        world.upstream.on(() => true, json(500, ''));
        return over;
      },
    },
  ],
  [
    'a failure that retries do not help',
    {
      status: 502,
      code: 'upstream_unreachable',
      isSlow: true,
      async begin(world) {
        await keepCircuitClosed(world);
        world.upstream.on(() => true, reset());
        return over;
      },
    },
  ],
  [
    'an open circuit',
    {
      status: 503,
      code: 'upstream_unavailable',
      isThorough: true,
      async begin(world) {
        await openCircuit(world);
        return over;
      },
    },
  ],
  [
    'a hold',
    {
      status: 429,
      code: 'rate_limited',
      async begin({ upstream, ask }) {
        upstream.once(callOf(PLAIN), json(429, '', { 'Retry-After': '300' }));
        expect(await ask(PLAIN)).toMatchObject({ status: 429 });
        return over;
      },
    },
  ],
  [
    'no free slot',
    {
      env: { UPSTREAM_MAX_CONNECTIONS: '1', UPSTREAM_TIMEOUT_MS: '600000', REQUEST_TIMEOUT_MS: '600000' },
      status: 503,
      code: 'overloaded',
      isSlow: true,
      async begin({ upstream, ask }) {
        const gate = barrier();
        upstream.once(callOf(PLAIN), hold(gate));
        const leave = new AbortController();
        const busy = ask(PLAIN, { token: secret(), signal: leave.signal }).catch(() => undefined);
        await gate.reached;
        return () => {
          leave.abort();
          return busy;
        };
      },
    },
  ],
];

const troubledWorld = async ({ env = {}, begin }: Trouble, before: (world: TimedWorld) => Promise<unknown>) => {
  const world = await openTimedWorld(env);
  world.answerAll(() => 'copy');
  await before(world);
  const end = await begin(world);
  return { world, end };
};

const fill = ({ ask }: TimedWorld) => Promise.all(cachedIds.map((id) => ask(id)));

const ttlOf = ({ headers }: TextAnswer) => Number(/ttl=(-?\d+)/.exec(headers['cache-status'] ?? '')?.[1]);

const writes = writeIds.filter((id) => invalidatedReads(id).length > 0);

describe.each(TROUBLES)('while there is %s', (_, trouble) => {
  const { status, code, isThorough = false } = trouble;
  const answered = <T>(world: TimedWorld, work: Promise<T>) => (trouble.isSlow ? passing(world, work) : work);

  test('a copy that may stand in for it is given, and says how old it is', async () => {
    const { world, end } = await troubledWorld(trouble, async (of) => {
      await fill(of);
      of.clock.advance(361_000);
    });
    for (const id of cachedIds) {
      const answer = await answered(world, world.ask(id));
      expect([id, answer.status, markOf(answer.text)]).toEqual([id, 200, 'copy']);
      const { fresh } = policyOf(id);
      expect(ttlOf(answer)).toBeLessThanOrEqual(fresh - 361);
      expect(ttlOf(answer)).toBeGreaterThan(fresh - 361 - 60); // waits of ours
      expect(answer.headers).toMatchObject({ 'cache-status': hit(ttlOf(answer)) });
    }
    await end();
  });

  test('a copy that is too old is not given, nor one to who wants a fresh one', async () => {
    const { world, end } = await troubledWorld(trouble, async (of) => {
      await fill(of);
      of.clock.advance(3_631_000);
      await of.ask('getSubscription');
      of.clock.advance(10_000); // the circuit forgets that it went well
    });
    for (const id of cachedIds.filter((one) => one !== 'getSubscription')) {
      expectProblem(await answered(world, world.ask(id)), { status, code });
    }
    for (const wants of ['no-cache', 'no-store']) {
      const headers = { 'Cache-Control': wants };
      expectProblem(await answered(world, world.ask('getSubscription', { headers })), { status, code });
    }
    const fresh = await world.ask('getSubscription');
    expect(fresh).toMatchObject({
      status: 200,
      headers: { 'cache-status': expect.stringMatching(/^portico; hit; ttl=\d/) },
    });
    await end();
  });

  test('nobody is given the copy of another account', async () => {
    const { world, end } = await troubledWorld(trouble, async (of) => {
      await Promise.all(cachedIds.map((id) => of.ask(id, { token: secret() })));
      of.clock.advance(361_000);
    });
    for (const id of cachedIds) expectProblem(await answered(world, world.ask(id)), { status, code });
    await end();
  });

  test.each(overviewTable)('%s is made of stale sections', async (path) => {
    const ask = ({ gateway, token }: TimedWorld) => call(gateway.url, { path, token });
    const { world, end } = await troubledWorld(trouble, async (of) => {
      await ask(of);
      of.clock.advance(361_000);
    });
    const answer = await answered(world, ask(world));
    expect(answer).toMatchObject({ status: 200, json: { errors: [], meta: { complete: true } } });
    const { sections } = (answer.json as { meta: { sections: Record<string, { state: string; age: number }> } }).meta;
    for (const { state, age } of Object.values(sections)) {
      expect(state).toBe('stale');
      expect(age).toBeGreaterThanOrEqual(361);
    }
    await end();
  });

  test('a batch is answered from stale copies', async () => {
    const { world, end } = await troubledWorld(trouble, async (of) => {
      await fill(of);
      of.clock.advance(361_000);
    });
    const requests = cachedIds.map((id) => ({ id, path: pathOf(id) }));
    const { gateway, token } = world;
    const body = { requests };
    const answer = await answered(world, call(gateway.url, { method: 'POST', path: '/bff/v1/batch', token, body }));
    expect(answer.json).toMatchObject({ responses: cachedIds.map((id) => ({ id, status: 200 })) });
    await end();
  });

  test.each([401, 403])('nothing is left of what was there before a %d', async (refusal) => {
    const { world, end } = await troubledWorld(trouble, async (of) => {
      await fill(of);
      of.clock.advance(361_000);
      of.upstream.once(callOf('getApiKey'), json(refusal, ''));
      await of.ask('getApiKey');
    });
    for (const id of cachedIds) expectProblem(await answered(world, world.ask(id)), { status, code });
    await end();
  });

  const cases = isThorough ? writes.flatMap((id) => [[id, 'known'] as const, [id, 'unknown'] as const]) : [];

  test.each([...cases, ['purchasePlan', 'unknown'] as const])(
    'nothing is left of what %s touched, with its outcome %s',
    async (write, outcome) => {
      const { world, end } = await troubledWorld(trouble, async (of) => {
        await fill(of);
        of.clock.advance(361_000);
        if (outcome === 'unknown') of.upstream.once(callOf(write), reset());
        expect(await of.ask(write)).toMatchObject({ status: outcome === 'unknown' ? 502 : expect.any(Number) });
      });
      for (const id of invalidatedReads(write)) expectProblem(await answered(world, world.ask(id)), { status, code });
      for (const id of cachedIds.filter((one) => !invalidatedReads(write).includes(one))) {
        expect([id, (await answered(world, world.ask(id))).status]).toEqual([id, 200]);
      }
      await end();
    },
  );
});
