import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import { gist } from '../idempotency/helpers.ts';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { call, type TextAnswer } from '../support/http.ts';
import { ID, TOKEN, USED_BY } from '../../src/entry/node/redis/scripts.ts';
import { relyOn, startOldRedis, type TestRedis } from '../support/redis.ts';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { bodyOf, requestOf, VersionedUpstream } from '../support/versioned-upstream.ts';
import type { Asking, Env } from '../support/world.ts';

/** Instances with one Redis behind them and one upstream. */
export class Fleet extends VersionedUpstream {
  readonly redis: TestRedis;
  readonly secrets = secret('of-the-fleet-itself');

  constructor(redis: TestRedis, upstream: ScriptedUpstream) {
    super(upstream);
    this.redis = redis;
  }

  start(env: Env = {}): Promise<NodeGateway> {
    const variables = {
      UPSTREAM_BASE_URL: this.upstream.url,
      STORE_URL: this.redis.url,
      SECRETS: this.secrets,
      RATE_LIMIT_PER_MINUTE: '0',
      ADMIN_PORT: '0',
      ...env,
    };
    return startNode(variables);
  }

  /** Redis is gone and there again, empty or with what is in a snapshot; all of these have noticed. */
  async restartRedis(instances: readonly NodeGateway[], snapshot?: string): Promise<void> {
    await this.redis.kill();
    await Promise.all(instances.map((at) => at.until(() => isWithoutStore(at) || undefined)));
    await this.redis.start(snapshot);
    await Promise.all(instances.map((at) => at.until(() => !isWithoutStore(at) || undefined)));
  }

  /** The store is the same for so long that instances rely on it; they learn it within a second. */
  relyOn(): Promise<void> {
    return relyOn(this.redis);
  }

  /** By the store's clock: how many there are that a limit may be used up in. */
  async minutesOf(act: () => Promise<unknown>): Promise<number> {
    const minute = async () => Math.floor(Number((await this.redis.client.time())[0]) / 60);
    const first = await minute();
    await act();
    return (await minute()) - first + 1;
  }

  async close(): Promise<void> {
    await killAll();
    await this.upstream.close();
    await this.redis.close();
    this.upstream.assertNoUnexpected();
  }
}

const saidIn = (at: NodeGateway, said: string) => at.records().filter(({ msg }) => msg === said).length;

/** How often it has said that the store is there again. */
const returnsIn = (at: NodeGateway) => saidIn(at, 'the store answers again');

/** Whether it has said that the store does not answer, and not yet that it does. */
export const isWithoutStore = (at: NodeGateway) => saidIn(at, 'the store does not answer') > returnsIn(at);

export async function openFleet(settings: Env = {}): Promise<Fleet> {
  const [redis, upstream] = await Promise.all([startOldRedis(settings), startUpstream()]);
  return new Fleet(redis, upstream);
}

/** The example request of an operation, through one instance. */
export function ask(at: NodeGateway, id: OperationId, { key, headers, ...others }: Asking): Promise<TextAnswer> {
  return call(at.url, {
    ...requestOf(id),
    headers: { ...(key !== undefined && { 'Idempotency-Key': key }), ...headers },
    ...others,
  });
}

export interface Order {
  readonly token: string;
  readonly key: string;
}

/** A new account and a new key. */
export const newOrder = (): Order => ({ token: secret(), key: secret('idempotency') });

export const buyOnce = async (
  at: NodeGateway,
  order: { readonly token: string; readonly key?: string },
): Promise<string> => gist(await ask(at, 'purchasePlan', order));

/** The state of a key, or why it is not told. */
export const outcomeAt = async (at: NodeGateway, { token, key }: Order) => {
  const answer = await call(at.url, { path: '/bff/v1/outcome', token, headers: { 'Idempotency-Key': key } });
  const { state, code } = answer.json as { readonly state?: string; readonly code?: string };
  return state ?? code ?? '';
};

/** For how long a client tries again: on a busy machine the store is late at times, and then away for a moment. */
const PATIENCE_MS = 20_000;

export async function buy(...order: Parameters<typeof buyOnce>): Promise<string> {
  for (const until = performance.now() + PATIENCE_MS; ;) {
    const answer = await buyOnce(...order);
    if (answer !== UNAVAILABLE || performance.now() > until) return answer;
  }
}

/** Resolves when it is carried out, with how often it was refused before. */
export async function writeThrough(at: NodeGateway, id: OperationId, options: Asking): Promise<number> {
  const until = performance.now() + PATIENCE_MS;
  for (let refused = 0; ; refused++) {
    const { status, text } = await ask(at, id, options);
    if (status < 300) return refused;
    if (status !== 503 || performance.now() > until) throw new Error(`${id} is refused: ${text}`);
  }
}

/** How an order ended that the upstream has answered with this version. */
export const bought = (version: number, { isReplay = false } = {}): string =>
  `201 ${bodyOf('purchasePlan', version)}${isReplay ? ' replayed=true' : ''}`;

export const UNAVAILABLE = '503 store_unavailable';

export const isHit = (answer: TextAnswer): boolean => /^portico; hit; ttl=[1-9]/.test(cacheStatusOf(answer) ?? '');

/** Reads until the answer is a fresh copy, which the instance then has. */
export async function prime(at: NodeGateway, id: OperationId, options: Asking): Promise<void> {
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until;) {
    const answer = await ask(at, id, options);
    expect(answer.status).toBe(200);
    if (isHit(answer)) return;
  }
  throw new Error(`${id} is never answered from a copy`);
}

/** Asks until the answer is none of the passing ones, and resolves with it. */
export function untilNot(passing: readonly string[], asking: () => Promise<string>): Promise<string> {
  return vi.waitFor(
    async () => {
      const answer = await asking();
      if (passing.includes(answer)) throw new Error(`still ${answer}`);
      return answer;
    },
    { timeout: 50_000, interval: 50 },
  );
}

/** One fleet for all tests of a file, and at their end a look into its Redis. */
export function fleetOfFile(): () => Fleet {
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    fleet = await openFleet();
  }, 30_000);
  afterAll(() => fleet?.close(), 30_000);
  return () => {
    if (!fleet) throw new Error('the fleet is not there yet');
    return fleet;
  };
}

/** To stand last in its file. */
export function testWhatIsKept(fleet: () => Fleet): void {
  test('afterwards there is no secret in the store, and everything expires', async () => {
    const kept = await expectSealed(fleet().redis);
    expect(kept).toBeGreaterThan(0);
    process.stdout.write(`${kept} keys in the store, all sealed and with an end\n`);
  });
}

/** What says which store it is, and stays. */
const OF_THE_STORE = [ID, TOKEN, USED_BY];

/** Resolves with the number of keys of accounts. */
export async function expectSealed(redis: TestRedis): Promise<number> {
  const all = Buffer.concat((await redis.dump()).flatMap((part) => [part, Buffer.from(' ')]));
  expect(leaksIn(all.toString('latin1'))).toEqual([]);
  const expiring = (await redis.client.keys('*')).filter((key) => !OF_THE_STORE.includes(key));
  for (const key of expiring) expect(await redis.client.pttl(key), key).not.toBe(-1); // -2: it has just ended
  return expiring.length;
}
