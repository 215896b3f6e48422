import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { cacheStatusOf } from '../cache/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { LEASE_MS, MAX_VALUE_BYTES } from '../../src/store/shared/engine.ts';
import { bodyOf, markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { ask, fleetOfFile } from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';

const READ = 'getSubscription';
const RELOADS = 150;
const WAVE = 10;
/** In one process: questions of one who waits for as long as these tests last, and those who go on asking for another reason. */
const MOST_QUESTIONS = 20;
/** For a busy machine. */
const SLACK_MS = 1_500;
const LARGE = randomBytes(MAX_VALUE_BYTES).toString('base64');
const COLLAPSED = 'portico; fwd=miss; stored; collapsed';

interface Instance {
  readonly at: NodeGateway;
  readonly relay: Relay;
}

describe.skipIf(!hasRedis)(`an instance that waits for the call of another one${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  const relays: Relay[] = [];
  let b: Instance;
  let c: Instance;

  beforeAll(async () => {
    [b, c] = await Promise.all([start(), start()]);
  }, 30_000);

  afterAll(() => Promise.all(relays.map((relay) => relay.close())));

  const start = async (): Promise<Instance> => {
    const relay = await startRelay(fleet().redis.port);
    relays.push(relay);
    return { relay, at: await fleet().start({ STORE_URL: `redis://127.0.0.1:${relay.port}` }) };
  };

  /** Its snapshot has shown it that another instance is fetching, and it has asked again since. */
  const waiting = async (one: Instance, from: number) =>
    vi.waitFor(() => expect(one.relay.scripts.length - from).toBeGreaterThan(2), { timeout: 5_000, interval: 5 });

  const read = (one: Instance, token: string) => ask(one.at, READ, { token });

  /** Reads through it, and resolves when it waits. */
  const readAndWait = async (one: Instance, token: string) => {
    const from = one.relay.scripts.length;
    const reading = read(one, token);
    await waiting(one, from);
    return { reading };
  };

  const ENDS = [
    { is: 'a failure', end: () => json(500), seen: 502 },
    { is: 'an answer that is too large to be shared', end: () => json(200, bodyOf(READ, LARGE)), seen: 200 },
  ];

  test.each(ENDS)('goes at once, with all others, when that ends with $is', async ({ end, seen }) => {
    const token = secret();
    const a = await start();
    const [first, others] = [barrier(), barrier()];
    fleet().upstream.on((to) => isOf(token, to), reply(hold(others), end()));
    fleet().upstream.once((to) => isOf(token, to), reply(hold(first), end()));
    const reads = [read(a, token)];
    await first.reached;
    for (const one of [b, c]) reads.push((await readAndWait(one, token)).reading);
    first.release();
    await others.count(2); // neither waits for the other
    others.release();
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([seen, seen, seen]);
    expect(fleet().callsOf(token)).toHaveLength(3);
  });

  test('gets the copy when there is one, however long the call takes', async () => {
    const token = secret();
    const a = await start();
    const held = fleet().holdNext(token, READ);
    const from = a.relay.scripts.length;
    const first = read(a, token);
    await held.reached;
    const { reading } = await readAndWait(b, token);
    const renewals = LEASE_MS / 500 + 1;
    await vi.waitFor(() => expect(a.relay.scripts.length - from).toBeGreaterThan(renewals), { timeout: 10_000 });
    held.release();
    expect(cacheStatusOf(await first)).toBe('portico; fwd=miss; stored');
    expect([cacheStatusOf(await reading), markOf((await reading).text)]).toEqual([COLLAPSED, 1]);
    expect(fleet().callsOf(token)).toHaveLength(1);
  });

  test.each(['SIGKILL', 'SIGSTOP'] as const)('fetches soon after that one got a %s', async (signal) => {
    const token = secret();
    const a = await start();
    const held = fleet().holdNext(token, READ);
    const cut = read(a, token).catch(() => 'cut');
    await held.reached;
    const { reading } = await readAndWait(b, token);
    const from = performance.now();
    a.at.signal(signal);
    expect([(await reading).status, cacheStatusOf(await reading)]).toEqual([200, 'portico; fwd=miss; stored']);
    const took = performance.now() - from;
    process.stdout.write(`fetched ${Math.round(took)} ms after ${signal}\n`);
    expect(took).toBeLessThan(LEASE_MS + SLACK_MS);
    expect(fleet().callsOf(token)).toHaveLength(2);
    await a.at.kill();
    held.release();
    await cut;
  });

  test(`asks for all of its ${RELOADS} readers together`, async () => {
    const token = secret();
    const a = await start();
    const held = fleet().holdNext(token, READ);
    const first = read(a, token);
    await held.reached;
    const from = b.relay.scripts.length;
    const reads: ReturnType<typeof read>[] = [];
    // Not all at once: on a busy machine the store may be late, and then one does not wait.
    while (reads.length < RELOADS) {
      for (let n = 0; n < WAVE; n++) reads.push(read(b, token));
      await waiting(b, from + reads.length);
    }
    held.release();
    const answers = await Promise.all([first, ...reads]);
    expect(answers.map(({ status, text }) => [status, markOf(text)])).toEqual(answers.map(() => [200, 1]));
    expect(b.relay.scripts.length - from - RELOADS).toBeLessThan(MOST_QUESTIONS);
    // On a busy machine the store may be late for one or the other, who then asks for itself.
    const alone = answers.filter((answer) => cacheStatusOf(answer) === 'portico; fwd=miss').length;
    expect(fleet().callsOf(token).length).toBeLessThanOrEqual(1 + alone);
    expect(alone).toBeLessThan(WAVE);
  });
});
