import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import { gist } from '../idempotency/helpers.ts';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { call, type TextAnswer } from '../support/http.ts';
import type { TestRedis } from '../support/redis.ts';
import { startOldRedis } from '../store/engine-world.ts';
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

  async close(): Promise<void> {
    await killAll();
    await this.upstream.close();
    await this.redis.close();
    this.upstream.assertNoUnexpected();
  }
}

const saidIn = (at: NodeGateway, said: string) => at.records().filter(({ msg }) => msg === said).length;

/** How often it has said that the store is there again. */
export const returnsIn = (at: NodeGateway) => saidIn(at, 'the store answers again');

/** Whether it has said that the store does not answer, and not yet that it does. */
const isWithoutStore = (at: NodeGateway) => saidIn(at, 'the store does not answer') > returnsIn(at);

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

/** For how long a client tries again: on a busy machine the store is late at times, and then away for a moment. */
const PATIENCE_MS = 5_000;

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

/** For so long after a change was announced another instance may go by what it knew before (contract.md section 7). */
export const passCurrent = () => sleep(130);

/** Asks until the answer is none of the passing ones, and resolves with it. */
export function untilNot(passing: readonly string[], asking: () => Promise<string>): Promise<string> {
  return vi.waitFor(
    async () => {
      const answer = await asking();
      if (passing.includes(answer)) throw new Error(`still ${answer}`);
      return answer;
    },
    { timeout: 15_000, interval: 50 },
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

/** Every key and value as it is: `DUMP` would compress them. Resolves with the number of keys. */
export async function expectSealed({ client }: TestRedis): Promise<number> {
  const keys = new Set<string>();
  for (let cursor = '0'; ;) {
    const [next, some] = await client.scan(cursor, 'COUNT', 1000);
    for (const key of some) keys.add(key);
    cursor = next;
    if (cursor === '0') break;
  }
  const texts = await Promise.all([...keys].map(async (key) => `${key} ${await textOf(client, key)}`));
  expect(leaksIn(texts.join('\n'))).toEqual([]);
  const expiring = [...keys].filter((key) => !key.endsWith(':id')); // an id stays
  for (const key of expiring) expect(await client.pttl(key), key).not.toBe(-1); // -2: it has just ended
  return keys.size;
}

const READERS: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  none: ['GET'],
};

async function textOf(client: TestRedis['client'], key: string): Promise<string> {
  const type = await client.type(key);
  const reader = READERS[type];
  if (!reader) throw new Error(`${key} is a ${type}; say here how to read one`);
  const [command, ...args] = reader;
  const value: unknown = await client.callBuffer(command, key, ...args);
  return (Array.isArray(value) ? (value as Buffer[]) : [value as Buffer | null])
    .map((part) => (part === null ? '' : Buffer.from(part).toString('latin1')))
    .join(' ');
}
