import { beforeEach, describe, expect, test } from 'vitest';
import { allOverviews } from '../../src/gateway/overviews.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import type { TextAnswer } from '../support/http.ts';
import { pathOf } from '../support/marked.ts';
import { cachedIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

/** The store of a process, without what lets a hit be answered at once. */
function withoutHits(): Store {
  const store = new MemoryStore({ maxBytes: 1_048_576 });
  const names = ['snapshot', 'beginWrite', 'endWrite', 'coolDown', 'coolsUntil', 'accept', 'spend'] as const;
  return Object.fromEntries(names.map((name) => [name, store[name].bind(store)])) as unknown as Store;
}

let roads: readonly World[];

beforeEach(async () => {
  const env = { RATE_LIMIT_PER_MINUTE: '100', PUBLIC_URL: 'https://portico.example' };
  roads = [await openWorld(env), await openWorld(env, { store: withoutHits() })];
  for (const world of roads) world.answerAll(() => 1);
});

const PATHS = [...cachedIds.map(pathOf), ...allOverviews.map(({ path }) => path)];

/** All but what is of one request, or of one process. */
const seen = ({ status, headers, text }: TextAnswer) => {
  const { 'x-request-id': _id, 'server-timing': timing = '', date: _date, ...rest } = headers;
  return { status, text, rest, timing: timing.replaceAll(/dur=[\d.]+/g, 'dur=') };
};

/** What both say to one request after another. */
const bothOf = (path: string, requests: readonly { method?: string; headers?: Readonly<Record<string, string>> }[]) =>
  Promise.all(
    roads.map(async (world) => {
      const answers = [];
      for (const request of requests) answers.push(seen(await world.call({ path, token: world.token, ...request })));
      return answers;
    }),
  );

const lineOf = ({ gateway }: World) => {
  const { request_id: _id, trace_id: _trace, duration_ms: _ms, account: _account, ...rest } = gateway.lines.at(-1)!;
  return rest;
};

describe.each(PATHS)('%s', (path) => {
  test('is answered at once as it is by way of the store', async () => {
    const [first, second] = await bothOf(path, [{}, {}, { method: 'HEAD' }]);
    expect(first?.[1]?.rest['cache-status']).toMatch(/^portico; hit/);
    expect(first).toEqual(second);
    expect(lineOf(roads[0]!)).toEqual(lineOf(roads[1]!));
  });

  test('is 304 by both for the same tag', async () => {
    const [[answer] = []] = await bothOf(path, [{}]);
    const headers = { 'If-None-Match': answer?.rest['etag'] ?? '' };
    const [first, second] = await bothOf(path, [{ headers }]);
    expect(first?.[0]?.status).toBe(304);
    expect(first).toEqual(second);
  });

  test.each(['no-cache', 'no-store'])('is no hit with %s', async (wish) => {
    await bothOf(path, [{}]);
    const [first, second] = await bothOf(path, [{ headers: { 'Cache-Control': wish } }]);
    expect(first?.[0]?.rest['cache-status']).toMatch(/^portico; fwd=/);
    expect(first).toEqual(second);
  });
});
