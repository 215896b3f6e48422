import { recordOf } from '../support/pairs.ts';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { allOverviews } from '../support/account-api.ts';
import { inProcess } from './in-process.ts';
import { type Marked, markedAccounts, MarkedUpstream, marksIn, randomOf } from './marked-upstream.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import { startGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { pathOf } from '../support/marked.ts';
import { bytes, httpResponse, perCall, startUpstream } from '../support/scripted-upstream.ts';
import { cachedIds } from '../support/table.ts';
import { times } from '../support/times.ts';

const OVERVIEWS = allOverviews.map(({ path }) => path);

/** Copies go stale and expire all the time, and there is room for a third of them. */
const ENV = {
  CACHE_POLICY: JSON.stringify(Object.fromEntries(cachedIds.map((id) => [id, { fresh: 2, stale: 2, on_error: 6 }]))),
  CACHE_MAX_BYTES: '600000',
};

interface Ask {
  readonly path: string;
  readonly init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string };
}

const WANTS = [
  ...Array.from({ length: 18 }, () => ({})),
  { 'Cache-Control': 'no-cache' },
  { 'Cache-Control': 'no-store' },
];

/** Mostly reads, some overviews, some batches. */
const anyAsk = (random: (below: number) => number): Ask => {
  const pathAny = () =>
    pathOf(cachedIds[random(cachedIds.length)] ?? 'getSubscription') + ['', '', '?page=1'][random(3)];
  const headers: Record<string, string> = { ...WANTS[random(WANTS.length)] };
  const kind = random(40);
  if (kind === 0) return { path: OVERVIEWS[random(OVERVIEWS.length)] ?? '', init: { headers } };
  if (kind > 1) return { path: pathAny(), init: { headers } };
  const requests = Array.from({ length: 4 }, (_, index) => ({ id: String(index), path: pathAny() }));
  return {
    path: '/bff/v1/batch',
    init: {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ requests }),
    },
  };
};

interface Seen {
  readonly status: number;
  readonly text: string;
  readonly cacheStatus: string | null | undefined;
}

/** What came of all answers: how often each status and each way through the cache, and whose they were. */
class Findings {
  readonly foreign: string[] = [];
  readonly unmarked: string[] = [];
  readonly statuses = new Map<number, number>();
  readonly ways = new Map<string, number>();

  note({ mark }: Marked, { path }: Ask, { status, text, cacheStatus }: Seen): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    const way = cacheStatus?.replace(/ttl=-\d+/, 'stale').replace(/ttl=\d+/, 'fresh') ?? 'none';
    this.ways.set(way, (this.ways.get(way) ?? 0) + 1);
    const marks = marksIn(text);
    for (const other of marks) if (other !== mark) this.foreign.push(`${mark} was shown ${path} of ${other}`);
    if (status === 200 && marks.size === 0 && !path.endsWith('batch')) this.unmarked.push(path);
  }

  expectIsolation(): void {
    expect(this.foreign).toEqual([]);
    expect(this.unmarked).toEqual([]);
    expect(this.statuses.get(500) ?? 0).toBe(0);
  }

  /** A run in which the cache had nothing to do would prove nothing. */
  expectVariety(): void {
    for (const way of ['hit; fresh', 'hit; stale', 'fwd=miss; stored', 'fwd=stale; stored', 'fwd=request; stored'])
      expect(this.ways.get(`portico; ${way}`) ?? 0, way).toBeGreaterThan(20);
    expect([...this.ways.keys()].some((way) => way.includes('collapsed'))).toBe(true);
    for (const status of [200, 401, 403, 404])
      expect(this.statuses.get(status) ?? 0, String(status)).toBeGreaterThan(0);
  }
}

/** Keeps that many asks under way until all are answered. */
const inLanes = async (lanes: number, total: number, one: () => Promise<void>) => {
  let left = total;
  const lane = async () => {
    while (left-- > 0) await one();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
};

const LANES = 64;

const READS = times(100_000);
const OVER_SOCKETS = times(5_000);

describe('no account is ever shown anything of another', () => {
  test(`in ${READS} mixed reads of 50 accounts, with evictions, expiries, failures and refreshes`, async () => {
    const accounts = markedAccounts(50);
    const upstream = new MarkedUpstream(accounts);
    const random = randomOf(20_260_609);
    const clock = clockOfDeadlines();
    const gateway = inProcess({
      env: ENV,
      clock,
      async transport({ method, path, headers }) {
        for (let turns = random(3); turns > 0; turns -= 1) await turn();
        const { status, headers: sent, body } = upstream.answer(method, path, recordOf(headers));
        return { status, headers: sent, body: { text: body } };
      },
    });
    const findings = new Findings();
    await inLanes(LANES, READS, async () => {
      const account = accounts[random(1 + random(accounts.length))]!; // some ask much more than others
      const ask = anyAsk(random);
      if (random(10) === 0) clock.advance(100);
      const answer = await gateway.ask(ask.path, account.token, ask.init);
      const cacheStatus = answer.headers.get('Cache-Status');
      findings.note(account, ask, { status: answer.status, text: await answer.text(), cacheStatus });
    });
    await gateway.close();
    findings.expectIsolation();
    findings.expectVariety();
    expect(upstream.unexpected).toEqual([]);
  });

  test(`in ${OVER_SOCKETS} of them over sockets`, async () => {
    const accounts = markedAccounts(50);
    const marked = new MarkedUpstream(accounts);
    const random = randomOf(50_090_606);
    const clock = clockOfDeadlines();
    const upstream = await startUpstream();
    const answer = ({
      method,
      target,
      headers,
    }: {
      method: string;
      target: string;
      headers: Record<string, unknown>;
    }) => {
      const { status, body, headers: own } = marked.answer(method, target, headers);
      return bytes(httpResponse(status, body, own));
    };
    upstream.on(() => true, perCall(answer));
    const gateway = await startGateway(upstream.url, { env: { ...ENV, RATE_LIMIT_PER_MINUTE: '0' }, clock });
    onTestFinished(async () => {
      await gateway.close();
      await upstream.close();
    });
    const findings = new Findings();
    await inLanes(LANES, OVER_SOCKETS, async () => {
      const account = accounts[random(1 + random(accounts.length))]!; // some ask much more than others
      const ask = anyAsk(random);
      if (random(4) === 0) clock.advance(400);
      const { status, text, headers } = await call(gateway.url, { path: ask.path, token: account.token, ...ask.init });
      findings.note(account, ask, { status, text, cacheStatus: headers['cache-status'] });
    });
    findings.expectIsolation();
    expect(marked.unexpected).toEqual([]);
  });
});
