import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openCircuit } from '../resilience/helpers.ts';
import { manualClock } from '../support/clock.ts';
import { json } from '../support/scripted-upstream.ts';
import {
  type LegScript,
  legsOf,
  openOverviews,
  type OverviewBody,
  type OverviewWorld,
  overviewTable,
  policyEnv,
} from './helpers.ts';

const FRESH = { fresh: 5, stale: 60, on_error: 600 };

type Asked = Readonly<Record<string, string>>;

const changedFrom = (etag: string | undefined, more = ''): Asked => ({
  'If-None-Match': etag ?? '',
  Prefer: `changed-sections${more}`,
});

/** What a client has that takes what comes into what it has. */
class Copy {
  etag: string | undefined;
  data: Record<string, unknown> = {};

  take({ data, meta }: OverviewBody, etag: string | undefined): void {
    const { unchanged = [] } = meta as { unchanged?: readonly string[] };
    const kept = Object.fromEntries(unchanged.map((name) => [name, this.data[name]]));
    const all = { ...kept, ...data };
    this.data = Object.fromEntries(Object.keys(meta.sections).map((name) => [name, all[name]]));
    this.etag = etag;
  }
}

const marked = (text: string, mark: number) => text.replace('{', `{"x_mark":${mark},`);

/** Lets copies grow old, and has what they are renewed by read. */
async function renew(world: OverviewWorld, path: string): Promise<void> {
  world.advance(FRESH.fresh);
  await world.get(path, { headers: { 'Cache-Control': 'no-cache' } });
}

const lastOf = (text: string) => JSON.parse(text.trim().split('\n').at(-1) ?? '') as { etag?: string };

describe.each(overviewTable)('%s', (path, overview) => {
  const legs = legsOf(overview);
  const table = legs.map((leg) => [leg.section, leg] as const);
  const plain = legs.filter(({ isCard }) => !isCard).map((leg) => [leg.section, leg] as const);

  test.each(plain)('with changed sections only `%s` comes where only that differs', async (section, leg) => {
    const world = await openOverviews(policyEnv(FRESH));
    const first = await world.get(path);
    world.on(leg, json(200, marked(leg.upstream, 2)));
    await renew(world, path);
    const { status, headers, body, text } = await world.get(path, { headers: changedFrom(first.headers['etag']) });
    expect([status, headers['preference-applied'], headers['cache-control']]).toEqual([
      200,
      'changed-sections',
      'no-store',
    ]);
    expect(text.startsWith(`{"data":{"${section}":${marked(leg.text, 2)}},"errors":[]`)).toBe(true);
    const others = legs.map((one) => one.section).filter((one) => one !== section);
    expect(body.meta).toMatchObject({ complete: true, unchanged: others });
    expect(Object.keys(body.meta.sections)).toEqual(legs.map((one) => one.section));
    const whole = await world.get(path);
    expect(headers['etag']).toBe(whole.headers['etag']);
    const copy = new Copy();
    copy.take(first.body, first.headers['etag']);
    copy.take(body, headers['etag']);
    expect(copy.data).toEqual(whole.body.data);
  });

  test('it is a 304 where none differs, with the total alone in `Server-Timing` and the age of the oldest', async () => {
    const world = await openOverviews(policyEnv(FRESH));
    const { headers: first } = await world.get(path);
    world.advance(3);
    const { status, headers } = await world.get(path, { headers: changedFrom(first['etag']) });
    expect([status, headers['age'], headers['etag'], headers['preference-applied']]).toEqual([
      304,
      '3',
      first['etag'],
      undefined,
    ]);
    expect(headers['server-timing']).toMatch(/^total;dur=[\d.]+$/);
  });

  test.each(['"other"', '"a.b.c.d"', 'nonsense', '*x', '"', `"${'a'.repeat(16)}.${'b'.repeat(16)}"`])(
    'an ETag that is none of it, %s, gets the whole answer',
    async (etag) => {
      const world = await openOverviews();
      const whole = await world.get(path);
      const { status, headers, body } = await world.get(path, { headers: changedFrom(etag) });
      expect([status, headers['preference-applied']]).toEqual([200, undefined]);
      expect(body.data).toEqual(whole.body.data);
      expect(body.meta).not.toHaveProperty('unchanged');
    },
  );

  test('a weak ETag, and one of a list, are taken too', async () => {
    const world = await openOverviews(policyEnv(FRESH));
    const { headers: first } = await world.get(path);
    const weak = `"other", W/${first['etag']}`;
    expect((await world.get(path, { headers: changedFrom(weak) })).status).toBe(304);
    const [, leg] = plain[0]!;
    world.on(leg, json(200, marked(leg.upstream, 2)));
    await renew(world, path);
    const { body } = await world.get(path, { headers: changedFrom(weak) });
    expect(Object.keys(body.data)).toEqual([leg.section]);
  });

  test.each(table)('a failing `%s` is told with the whole answer, unless it fails the whole', async (_, leg) => {
    const world = await openOverviews(policyEnv({ fresh: 0, stale: 0, on_error: 0 }));
    const { headers: first } = await world.get(path);
    world.on(leg, json(500));
    const { status, headers, body } = await world.get(path, { headers: changedFrom(first['etag']) });
    expect([status, headers['preference-applied']]).toEqual([leg.required ? 502 : 200, undefined]);
    if (!leg.required) expect(Object.keys(body.data)).toEqual(legs.map(({ section }) => section));
  });

  test('sections whose upstream fails say so, which is news; copies that are only being refreshed are none', async () => {
    const clock = manualClock();
    const world = await openOverviews(policyEnv(FRESH), { clock });
    const first = await world.get(path);
    for (const leg of legs) world.on(leg, json(500));
    world.advance(FRESH.fresh);
    const { 'If-None-Match': known } = changedFrom(first.headers['etag']);
    const refreshing = await world.get(path, { headers: { 'If-None-Match': known! } });
    expect(refreshing.status).toBe(304);
    await expect.poll(async () => (await world.get(path)).headers['etag']).not.toBe(first.headers['etag']);
    await expect
      .poll(async () => Object.values((await world.get(path)).body.meta.sections))
      .toEqual(legs.map(() => ({ state: 'stale', age: FRESH.fresh, code: 'upstream_bad_response' })));
    const told = await world.get(path, { headers: changedFrom(first.headers['etag']) });
    expect([told.status, told.body.data, told.headers['preference-applied']]).toEqual([200, {}, 'changed-sections']);
    expect((await world.get(path, { headers: changedFrom(told.headers['etag']) })).status).toBe(304);
    for (const leg of legs) world.on(leg, json(200, leg.upstream));
    await expect.poll(async () => (await world.get(path)).headers['etag']).toBe(first.headers['etag']);
  });

  test('of some sections, and of some of their fields, changes are told alike; a HEAD has the head of that', async () => {
    const world = await openOverviews(policyEnv(FRESH));
    const [section, leg] = plain[0]!;
    const [, other] = plain[1]!;
    for (const query of [
      `sections=${section},${other.section}`,
      `fields[${section}]=id&sections=${section},${other.section}`,
    ]) {
      const at = `${path}?${query}`;
      const first = await world.get(at);
      world.on(other, json(200, marked(other.upstream, 2)));
      world.on(leg, json(200, marked(leg.upstream, 2)));
      await renew(world, path);
      const headers = changedFrom(first.headers['etag']);
      const { status, body, headers: answered } = await world.get(at, { headers });
      const changed = query.startsWith('fields') ? [other.section] : [section, other.section];
      expect([status, Object.keys(body.data)]).toEqual([200, changed]);
      const head = await world.get(at, { headers, method: 'HEAD' });
      expect([head.status, head.headers['etag'], head.text]).toEqual([200, answered['etag'], '']);
      world.on(other, json(200, other.upstream));
      world.on(leg, json(200, leg.upstream));
      await renew(world, path);
    }
  });

  const whyOld = [
    [
      'rate_limited',
      async (world: OverviewWorld, leg: LegScript) => world.on(leg, json(429, {}, { 'Retry-After': '60' })),
    ],
    ['upstream_unavailable', openCircuit],
  ] as const;
  test.each(whyOld)('sections that are old say why no newer ones came: %s', async (code, happens) => {
    const world = await openOverviews(policyEnv(FRESH));
    const { headers: first } = await world.get(path);
    const [section, leg] = plain[0]!;
    world.advance(FRESH.fresh);
    await happens(world, leg);
    const sections = async () => (await world.get(path)).body.meta.sections;
    await expect.poll(sections).toMatchObject({ [section]: { state: 'stale', code } });
    const told = await world.get(path, { headers: changedFrom(first['etag']) });
    expect([told.status, told.body.data, told.headers['preference-applied']]).toEqual([200, {}, 'changed-sections']);
  });

  test('lines say what has not changed, and their ETag is that of the JSON', async () => {
    const world = await openOverviews(policyEnv(FRESH));
    const first = await world.get(path);
    const lines = { Accept: 'application/x-ndjson' };
    expect(lastOf((await world.get(path, { headers: lines })).text).etag).toBe(first.headers['etag']);
    const [section, leg] = plain[0]!;
    world.on(leg, json(200, marked(leg.upstream, 2)));
    await renew(world, path);
    const headers = { ...lines, ...changedFrom(first.headers['etag']) };
    const answer = await world.get(path, { headers });
    expect(answer.headers['preference-applied']).toBe('changed-sections');
    const told = answer.text.trim().split('\n');
    expect(told.slice(0, -1).toSorted()).toEqual(
      legs
        .map((one) => {
          const head = `{"section":"${one.section}","state":"fresh"`;
          return one.section === section ? `${head},"data":${marked(one.text, 2)}}` : `${head},"unchanged":true}`;
        })
        .toSorted(),
    );
    expect(lastOf(answer.text).etag).toBe((await world.get(path)).headers['etag']);
  });

  test('a page has as many items as `page_size` of its section says, under a key of its own', async () => {
    const world = await openOverviews();
    const pages = legs.filter(({ section }) => overview.sections[section]?.read.paged);
    for (const { section, path: at, upstream } of pages) {
      const sized = `${at}${at.includes('?') ? '&' : '?'}page_size=5`;
      world.upstream.on(`GET ${sized}`, json(200, marked(upstream, 5)));
      const query = `sections=${section}&page_size[${section}]=5`;
      const { text } = await world.get(`${path}?${query}`);
      expect(text).toContain('"x_mark":5');
      expect((await world.get(`${path}?sections=${section}`)).text).not.toContain('x_mark');
      expect((await world.get(`${path}?${query}`)).headers['cache-status']).toMatch(/hit/);
      const next = `${world.upstream.url}${at}${at.includes('?') ? '&' : '?'}page=2&page_size=7`;
      world.upstream.on(
        `GET ${sized.replace('=5', '=7')}`,
        json(200, upstream.replace('"next":null', `"next":"${next}"`)),
      );
      const { text: linked } = await world.get(`${path}?${query.replace('=5', '=7')}`);
      const own = (JSON.parse(linked) as OverviewBody).data[section] as { next: string };
      expect(own.next).toBe(next.replace(world.upstream.url, world.gateway.url));
      for (const bad of ['0', '101', '-1', 'x', '', '5.0', '05']) {
        const { status, json: problem } = await world.get(`${path}?page_size[${section}]=${bad}`);
        expect([status, problem]).toMatchObject([400, { errors: [{ field: `page_size[${section}]` }] }]);
      }
    }
    const others = legs.filter(({ section }) => !overview.sections[section]?.read.paged).map(({ section }) => section);
    for (const name of [...others, 'nothing'])
      expect((await world.get(`${path}?page_size[${name}]=5`)).status).toBe(400);
  });
});

test('whoever takes what comes into what he has, has what a new client gets', async () => {
  const step = fc.record({
    leg: fc.nat(),
    mark: fc.nat(2),
    fails: fc.boolean(),
    asks: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.nat(2), fc.array(step, { minLength: 4, maxLength: 12 }), async (which, steps) => {
      const [path, overview] = overviewTable[which]!;
      const legs = legsOf(overview);
      const world = await openOverviews(policyEnv(FRESH), {
        clock: manualClock(),
        atEnd: (end) => void ends.push(end),
      });
      const copy = new Copy();
      for (const { leg: at, mark, fails, asks } of steps) {
        const leg = legs[at % legs.length]!;
        world.on(leg, fails ? json(500) : json(200, leg.isCard ? leg.upstream : marked(leg.upstream, mark)));
        await renew(world, path);
        if (!asks) continue;
        // A refresh in the background may come between the two.
        await expect
          .poll(async () =>
            isSame(copy, await world.get(path, { headers: changedFrom(copy.etag) }), await world.get(path)),
          )
          .toBe(true);
      }
      for (const end of ends.splice(0)) await end();
    }),
    { numRuns: 25 },
  );
});

const ends: (() => Promise<void>)[] = [];

type Got = Awaited<ReturnType<OverviewWorld['get']>>;

/** Takes what came; whether that is what a new client got then. What fails as a whole, or has no ETag, is not taken. */
function isSame(copy: Copy, { status, headers, body }: Got, whole: Got): boolean {
  if (status >= 400 || whole.status >= 400) return status === whole.status;
  if (status === 200) copy.take(body, headers['etag']);
  if (copy.etag !== whole.headers['etag']) return false;
  expect(copy.data).toEqual(whole.body.data);
  return true;
}
