import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Method } from '../../src/upstream/operation.ts';
import { matchPath } from '../../src/upstream/match.ts';
import type { OperationId } from '../../src/upstream/operations/index.ts';
import { bodyOf as exampleOf, cacheStatusOf } from '../cache/world.ts';
import { gist } from '../idempotency/shop.ts';
import { killAll, type NodeGateway, startNode } from '../runtime/node-gateway.ts';
import { exampleInput } from '../support/examples.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import {
  type Call,
  json,
  perCall,
  type ScriptedUpstream,
  startUpstream,
  type Step,
} from '../support/scripted-upstream.ts';
import { cardLast4, email, leaksIn, secret } from '../support/secrets.ts';

export const LONG = { timeout: 60_000 };

type Asking = Partial<CallOptions> & { readonly key?: string };

/** Instances with one Redis behind them and one upstream, which keeps a version of each account's state. */
export interface Fleet {
  readonly redis: TestRedis;
  readonly upstream: ScriptedUpstream;
  readonly secrets: string;
  /** What the account's state is now: its good writes raise it, and every answer carries it. */
  versionOf(token: string): number;
  /** Answers the call with what is true now; a write is carried out now. */
  answer(): Step;
  /** What is true when the call comes, told after the steps before it. */
  answerOf(version: number): Step;
  start(env?: Readonly<Record<string, string>>): Promise<NodeGateway>;
  callsOf(token: string): readonly Call[];
  /** How often this key, or this account, was charged. */
  charges(of: { readonly key?: string; readonly token?: string }): number;
  close(): Promise<void>;
}

const CLIENT_SECRET = secret('client');
const EMAIL = email();

/** Made once: there are ten thousands of calls. */
const remembered = <T>(make: (id: OperationId) => T): ((id: OperationId) => T) => {
  const known = new Map<OperationId, T>();
  return (id) => {
    const made = known.get(id) ?? make(id);
    known.set(id, made);
    return made;
  };
};

const PLACE = '<VERSION>';

const templateOf = remembered((id) =>
  exampleOf(id, PLACE)
    .replaceAll('<CLIENT_SECRET>', CLIENT_SECRET)
    .replaceAll('<EMAIL>', EMAIL)
    .replaceAll('"4242"', JSON.stringify(cardLast4)),
);

/** The example answer with the version in it, and with secrets where the upstream has some. */
const bodyOf = (id: OperationId, version: number): string =>
  templateOf(id).replace(JSON.stringify(PLACE), String(version));

const RECAPTCHA = secret('recaptcha');

const requestOf = remembered((id) => {
  const { method, path, body } = exampleInput(id);
  if (body === undefined) return { method, path };
  const parsed = JSON.parse(body) as object;
  return { method, path, body: JSON.stringify(id === 'purchasePlan' ? { ...parsed, recaptcha: RECAPTCHA } : parsed) };
});

export const isPurchase = ({ method, path }: Call): boolean =>
  method === 'POST' && path === requestOf('purchasePlan').path;

export const isOf = (token: string, { headers }: Pick<Call, 'headers'>): boolean =>
  headers['authorization'] === `Token ${token}`;

export const idOf = ({ method, path }: Call): OperationId => {
  const operation = matchPath(path)?.methods.get(method as Method);
  if (!operation) throw new Error(`${method} ${path} is no operation`);
  return operation.id as OperationId; // one of the table, which `match` reads too
};

const tokenOf = ({ headers }: Call) => String(headers['authorization']).replace('Token ', '');

const goodAnswer = (to: Call, version: number): Step => {
  const text = bodyOf(idOf(to), version);
  const good = to.method === 'POST' ? 201 : 200;
  return json(text === '' ? 204 : good, text);
};

export async function openFleet(): Promise<Fleet> {
  const [redis, upstream] = await Promise.all([startRedis(), startUpstream()]);
  const versions = new Map<string, number>();
  const versionOf = (token: string) => versions.get(token) ?? 1;
  const answer = () =>
    perCall((to) => {
      const token = tokenOf(to);
      if (to.method !== 'GET') versions.set(token, versionOf(token) + 1);
      return goodAnswer(to, versionOf(token));
    });
  upstream.on(({ headers }) => 'authorization' in headers, answer());
  const secrets = secret('of-the-fleet-itself');
  return {
    redis,
    upstream,
    secrets,
    versionOf,
    answer,
    answerOf: (version) => perCall((to) => goodAnswer(to, version)),
    start: (env = {}) =>
      startNode({
        UPSTREAM_BASE_URL: upstream.url,
        STORE_URL: redis.url,
        SECRETS: secrets,
        RATE_LIMIT_PER_MINUTE: '0',
        ADMIN_PORT: '0',
        ...env,
      }),
    callsOf: (token) => upstream.callsTo((to) => isOf(token, to)),
    charges: ({ key, token }) =>
      upstream.callsTo(
        (to) =>
          isPurchase(to) &&
          (key === undefined || to.headers['idempotency-key'] === key) &&
          (token === undefined || isOf(token, to)),
      ).length,
    async close() {
      await killAll();
      await upstream.close();
      await redis.close();
      upstream.assertNoUnexpected();
    },
  };
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

/** An account of its own and a key of its own. */
export const newOrder = (): Order => ({ token: secret(), key: secret('idempotency') });

export const buyOnce = async (
  at: NodeGateway,
  order: { readonly token: string; readonly key?: string },
): Promise<string> => gist(await ask(at, 'purchasePlan', order));

/** Attempts of a client that does what `Retry-After` says: on a busy machine the store is late at times. */
const ATTEMPTS = 10;

export async function buy(...order: Parameters<typeof buyOnce>): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const answer = await buyOnce(...order);
    if (answer !== UNAVAILABLE || attempt === ATTEMPTS) return answer;
  }
}

/** Comes out when it is carried out, with how often it was refused before. */
export async function writeThrough(at: NodeGateway, id: OperationId, options: Asking): Promise<number> {
  for (let refused = 0; ; refused++) {
    const { status, text } = await ask(at, id, options);
    if (status < 300) return refused;
    if (status !== 503 || refused === ATTEMPTS) throw new Error(`${id} is refused: ${text}`);
  }
}

/** How an order ended that the upstream has answered with this version. */
export const bought = (version: number, { isReplay = false } = {}): string =>
  `201 ${bodyOf('purchasePlan', version)}${isReplay ? ' replayed=true' : ''}`;

export const UNAVAILABLE = '503 store_unavailable';

export const isHit = (answer: TextAnswer): boolean => /^portico; hit; ttl=[1-9]/.test(cacheStatusOf(answer) ?? '');

/** Reads until the answer is a fresh copy, so that the instance has one of its own. */
export async function prime(at: NodeGateway, id: OperationId, options: Asking): Promise<void> {
  for (let attempt = 0; attempt <= ATTEMPTS; attempt++) {
    const answer = await ask(at, id, options);
    expect(answer.status).toBe(200);
    if (isHit(answer)) return;
  }
  throw new Error(`${id} is never answered from a copy`);
}

/** Asks again and again until the answer is none of the passing ones. Comes out with it. */
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
  test('what is then in the store gives no secret away, and all of it ends by itself', async () => {
    const kept = await expectSealed(fleet().redis);
    expect(kept).toBeGreaterThan(0);
    process.stdout.write(`${kept} keys in the store, all sealed and with an end\n`);
  });
}

/** Every key and value as it is: `DUMP` would compress them. Comes out with the number of keys. */
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
  for (const key of keys) expect(await client.pttl(key), key).not.toBe(-1); // -2: it has just ended
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
