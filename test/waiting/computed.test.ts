import { expect, test, vi } from 'vitest';
import { overview } from '../../src/gateway/overviews.ts';
import { json } from '../support/scripted-upstream.ts';
import { tableOf } from '../../src/upstream/table.ts';
import { page, rows } from '../overviews/own.ts';
import { watchedClock } from '../support/clock.ts';
import { openWorld } from '../support/world.ts';

const PATH = '/bff/v1/mine';
const SECONDS = 20;
/** Of an attempt and of a request. */
const DEADLINES = [5_000, 10_000];

/** An overview of a list and what is computed of it; its copies are old from the beginning. */
async function open() {
  const clock = watchedClock();
  const own = overview(PATH, { books: { read: rows.listBooks, required: true } }, () => 1);
  const env = { CACHE_POLICY: '{"listBooks":{"fresh":0,"stale":0,"on_error":600}}' };
  const world = await openWorld(env, { clock, tables: { table: tableOf(rows), overviews: [own] } });
  world.upstream.on('GET /book/', json(200, page('{"id":1}')));
  const get = (path: string, headers = {}) => world.call({ path, token: world.token, headers });
  /** Waits until the time is over; gives the first pause. */
  const pauseOf = async (path: string) => {
    const { headers } = await get(path);
    const before = clock.lengths.length;
    const pauses = () => clock.lengths.slice(before).filter((ms) => !DEADLINES.includes(ms));
    const answer = get(path, { 'If-None-Match': headers['etag'] ?? '', Prefer: `wait=${SECONDS}` });
    await vi.waitFor(() => expect(pauses()).toHaveLength(1));
    const [pause] = pauses();
    world.advance(SECONDS);
    expect((await answer).status).toBe(304);
    return pause;
  };
  return { ...world, get, pauseOf };
}

test('what is computed is asked for no more often than what it is computed of', async () => {
  const world = await open();
  expect(await world.pauseOf(PATH)).toBe(await world.pauseOf(`${PATH}?sections=books`));
});

test('nor while the upstream fails', async () => {
  const world = await open();
  await world.get(PATH);
  world.upstream.on('GET /book/', json(500));
  expect(await world.pauseOf(PATH)).toBe(2_000);
});
