import { hash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { allOverviews, matchPath, type OperationId } from '../../support/account-api.ts';
import { testClock } from '../../support/clock.ts';
import { says } from '../../support/contract.ts';
import { exampleBody, exampleRequest } from '../../support/examples.ts';
import { type Answer, type Asking, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { sharedStores } from '../../support/stores.ts';
import { invalidatedReads, isSocial, partedBy, writeIds } from '../../support/table.ts';
import { seed, times } from '../../support/times.ts';
import { answer, pairsOf, transportBy } from '../../support/upstream.ts';
import { randomOf } from '../../rules/notes/world.ts';
import { beginOn, CACHED, isHit, MISS, seen, versioned } from './seen.ts';

const PRIVATE = says('Private to an account: nothing read with one credential is ever answered to another.');

everywhere(
  says('Private to an account: nothing read with one credential is ever answered to another.'),
  async (stage) => {
    const { ask, upstream, pass } = stage;
    const [one, other] = [{ token: secret() }, { token: secret() }];
    upstream.change(other.token);
    upstream.next('getSubscription', versioned(7, { etag: '"the-same"' }), versioned(8, { etag: '"the-same"' }));
    expect(seen(await ask('getSubscription', one))).toEqual([200, MISS, 7]);
    expect(seen(await ask('getSubscription', other))).toEqual([200, MISS, 8]);
    expect(seen(await ask('getSubscription', one))).toEqual([200, isHit, 7]);
    expect(seen(await ask('getSubscription', other))).toEqual([200, isHit, 8]);
    await pass(400);
    const slow = await beginOn(stage, 'getSubscription', one);
    expect((await ask('getSubscription', other)).version).toBe(2);
    expect(await slow.end(answer(304))).toEqual([200, 'portico; fwd=stale; stored', 7]);
  },
  { time: true },
);

test(says('Keys hold a keyed hash of the credential.'), async () => {
  const token = secret();
  const accountsWith = async (SECRETS: string) => {
    const clock = testClock();
    const { shelf, store } = sharedStores(clock);
    const asked: string[] = [];
    const read = shelf.read.bind(shelf);
    shelf.read = (account, names) => (asked.push([account, ...names].join(' ')), read(account, names));
    await openGateway({ SECRETS }, { clock, store }).ask('getSubscription', { token });
    expect(asked.length).toBeGreaterThan(0);
    return asked;
  };
  const [key, another] = ['k'.repeat(40), 'l'.repeat(40)];
  const keys = await accountsWith(key);
  expect(await accountsWith(`${another},${key}`)).toEqual(keys); // the last names accounts
  expect(await accountsWith(another)).not.toEqual(keys);
  for (const encoding of ['hex', 'base64', 'base64url'] as const)
    for (const text of [Buffer.from(token).toString(encoding), hash('sha256', token, encoding), token])
      expect(keys.join()).not.toContain(text);
});

/** Copies go stale and expire all the time, and there is room for a third of them. */
const ENV = {
  CACHE_POLICY: JSON.stringify(Object.fromEntries(CACHED.map((id) => [id, { fresh: 2, stale: 2, on_error: 6 }]))),
  CACHE_MAX_BYTES: '600000',
  LOG_REQUESTS: 'failures',
};

/** Each hundredth call or so fails in one of these ways; refusals are rarer, since they drop all of an account. */
const TROUBLE = [answer(503), answer(200, '<html>', { 'content-type': 'text/html' }), answer(404), answer(500)];
const REFUSALS = [answer(401), answer(403)];

const TOKENS = Array.from({ length: 50 }, (_, n) => secret(`account${n}`));
const READS = [...CACHED, 'getPendingPayment'] as const;
const WRITES = writeIds.filter((id) => !isSocial(id));
const BODIES = new Map<OperationId, string>(READS.map((id) => [id, exampleBody(id)]));
const MARK = /mark-(\d+)-(\w+)-(\d+)/g;

type Random = (below: number) => number;

const numbers = (first: number): Random => {
  const random = randomOf(first);
  return (below) => Math.floor(random() * below);
};

/**
 * Answers by the credential alone; in every object it says whose it is, of what, and its version, which each write raises.
 * Accounts have the same ETag for the same version, so that a condition sent with the wrong credential would be believed.
 */
class Marked {
  /** By the request that the account was changed by. */
  readonly done = new Map<string, number>();
  readonly #versions = TOKENS.map(() => 1);
  readonly #random: Random;
  #calls = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  readonly transport = transportBy(async ({ method, path, headers }) => {
    const sent = pairsOf(headers);
    const n = TOKENS.indexOf(sent['authorization']!.replace('Token ', ''));
    const isRead = method === 'GET';
    if (!isRead) await this.#pause();
    const trouble = this.#trouble();
    const isRefused = REFUSALS.includes(trouble!);
    if (isRefused || (!isRead && trouble?.status !== 404)) this.done.set(sent['x-request-id']!, ++this.#versions[n]!);
    const version = this.#versions[n]!; // what a read shows is fixed when it arrives, the worst that a slow answer can do
    await this.#pause();
    if (trouble) return trouble;
    const id = matchPath(path.split('?')[0]!)?.methods.get(method as 'GET')?.id as OperationId;
    const etag = `"${id}-${version}"`;
    if (sent['if-none-match'] === etag) return answer(304, '', { etag });
    const mark = `{"x_mark":"mark-${n}-${id}-${version}",`;
    const body = isRead ? BODIES.get(id)!.replaceAll('{', mark).replaceAll(',}', '}') : '{}';
    return answer(200, body, this.#calls % 2 === 0 ? { etag } : {}); // what has none is fetched anew
  });

  #trouble() {
    this.#calls++;
    if (this.#calls % 97 === 0) return TROUBLE[this.#calls % 4]!;
    return this.#calls % 1_009 === 0 ? REFUSALS[this.#calls % 2]! : undefined;
  }

  async #pause(): Promise<void> {
    for (let turns = this.#random(4); turns > 0; turns--) await turn();
  }
}

interface Any {
  readonly path: string;
  readonly asking?: Asking;
  /** What it changes. */
  readonly touched?: readonly OperationId[];
}

/** Mostly reads, some writes, some overviews, some batches. */
function anyAsk(random: Random): Any {
  /** Of one thing under all its names. */
  const pathOf = (id: OperationId) =>
    exampleRequest(id).path.replace('subuser/', ['subuser/', 'subuser/0', 'subuser/00'][random(3)]!);
  const anyPath = () => pathOf(READS[random(READS.length)]!) + ['', '', '?page=1'][random(3)]!;
  const wants = ['no-cache', 'no-store'][random(20)];
  const headers: Record<string, string> = wants ? { 'Cache-Control': wants } : {};
  const kind = random(40);
  if (kind === 0) return { path: allOverviews[random(allOverviews.length)]!.path, asking: { headers } };
  if (kind > 7) return { path: anyPath(), asking: { headers } };
  if (kind > 1) {
    const id = WRITES[random(WRITES.length)]!;
    return { path: pathOf(id), asking: exampleRequest(id), touched: [...invalidatedReads(id), ...partedBy(id)] };
  }
  const requests = Array.from({ length: 4 }, (_, n) => ({ id: String(n), path: anyPath() }));
  return { path: '/bff/v1/batch', asking: { headers, body: { requests } } };
}

const ASKS = times(6_000);
/** A run in which the cache had nothing to do would prove nothing. */
const VARIETY = [
  'hit; fresh',
  'hit; old',
  'fwd=miss; stored',
  'fwd=stale; stored',
  'fwd=request; stored',
  'fwd=method',
];

test(`${PRIVATE}: in ${ASKS} mixed requests; and ${says('no later read of that account')} shows what was there before`, async () => {
  const random = numbers(seed());
  const { transport, done } = new Marked(random);
  const { call, clock, idle } = openGateway(ENV, { transport });
  const ways = new Map<string, number>();
  const wrong: string[] = [];
  /** The least that reads of each may show from now on. */
  const fences = TOKENS.map(() => new Map<string, number>());
  const look = (n: number, least: ReadonlyMap<string, number>, { path, touched = [] }: Any, given: Answer) => {
    const { status, text, cache, headers } = given;
    const way = String(cache)
      .replace(/ttl=-\d+/, 'old')
      .replace(/ttl=\d+/, 'fresh');
    for (const one of [way, String(status)]) ways.set(one, (ways.get(one) ?? 0) + 1);
    for (const [mark, of, id, version] of text.matchAll(MARK))
      if (Number(of) !== n || Number(version) < (least.get(id!) ?? 0)) wrong.push(`${n} was shown ${path}: ${mark}`);
    const version = done.get(headers.get('x-request-id')!) ?? 0;
    for (const id of status === 401 || status === 403 ? READS : touched)
      fences[n]!.set(id, Math.max(version, fences[n]!.get(id) ?? 0));
  };
  let left = ASKS;
  const lane = async () => {
    while (left-- > 0) {
      const n = random(1 + random(TOKENS.length)); // some ask much more than others
      const any = anyAsk(random);
      if (random(10) === 0) clock.advance(100);
      const [least, client] = [new Map(fences[n]), new AbortController()];
      const headers = { ...any.asking?.headers, 'x-request-id': `ask-${left}` };
      const asked = call(any.path, { ...any.asking, token: TOKENS[n]!, headers, signal: client.signal });
      if (random(20) === 0) void turn().then(() => client.abort());
      const given = await asked;
      if (!client.signal.aborted) look(n, least, any, given);
    }
  };
  await Promise.all(Array.from({ length: 64 }, lane));
  await idle();
  expect(wrong).toEqual([]);
  expect(ways.get('500')).toBe(undefined);
  for (const way of VARIETY) expect(ways.get(`portico; ${way}`) ?? 0, way).toBeGreaterThan(20);
  for (const way of ['200', '401', '403', '404']) expect(ways.get(way) ?? 0, way).toBeGreaterThan(0);
  expect(Array.from(ways.keys()).some((way) => way.includes('collapsed'))).toBe(true);
});
