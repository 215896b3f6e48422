import { beforeEach, describe, expect, test } from 'vitest';
import { allOverviews } from '../support/account-api.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { byCookie, openSessions, type SessionWorld } from '../sessions/helpers.ts';
import { sharedStore } from '../store/shared-world.ts';
import { clockOfDeadlines } from '../support/clock.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { pathOf } from '../support/marked.ts';
import { objectEngine } from '../support/object-storage.ts';
import { cachedIds } from '../support/table.ts';

type Ask = (options: CallOptions) => Promise<TextAnswer>;

/** A client's way to a copy. */
interface Road {
  readonly world: SessionWorld;
  readonly ask: Ask;
}

const ENV = { RATE_LIMIT_PER_MINUTE: '100', PUBLIC_URL: 'https://portico.example' };

let roads: readonly Road[];

beforeEach(async () => {
  const clock = clockOfDeadlines();
  const stores = [
    new MemoryStore({ maxBytes: 1_048_576 }),
    sharedStore({ engine: objectEngine(), clock: clockOfDeadlines() }),
  ];
  const opened = await Promise.all(
    stores.map(async (store) => {
      const world = await openSessions(ENV, { store, clock });
      world.answerAll(() => 1);
      const cookie = await world.signIn();
      const byHeader: Ask = (options) => world.call({ token: world.token, ...options });
      return [
        { world, ask: byHeader },
        { world, ask: (options: CallOptions) => world.call(byCookie(cookie, options)) },
      ];
    }),
  );
  roads = opened.flat();
});

const PATHS = [...cachedIds.map(pathOf), ...allOverviews.map(({ path }) => path)];

/** All but what is of one request, of one process or of its count. */
const answered = ({ status, headers, text }: TextAnswer) => {
  const { 'x-request-id': _id, 'server-timing': timing = '', date: _date, ratelimit: _limit, ...rest } = headers;
  return { status, text, rest, timing: timing.replaceAll(/dur=[\d.]+/g, 'dur=') };
};

const leftOf = ({ headers }: TextAnswer) => Number(/r=(\d+)/.exec(headers['ratelimit'] ?? '')?.[1]);

const callsOf = () => roads.map(({ world }) => world.upstream.calls.length);

/** What each road answers, one after the other, and what of it goes into the log. */
async function onAll(options: CallOptions) {
  const answers: TextAnswer[] = [];
  for (const { ask } of roads) answers.push(await ask(options));
  return answers;
}

const lineOf = ({ world: { gateway } }: Road) => {
  const {
    request_id: _id,
    trace_id: _trace,
    duration_ms: _ms,
    account: _of,
    client: _at,
    ...rest
  } = gateway.lines.at(-1)!;
  return rest;
};

describe.each(PATHS)('%s from a copy, by header and by cookie, over either store', (path) => {
  beforeEach(() => onAll({ path }));

  test.each(['GET', 'HEAD'])('is the same for %s, and costs no call of the upstream', async (method) => {
    const before = callsOf();
    const answers = await onAll({ path, method });
    expect(answers[0]?.headers['cache-status']).toMatch(/^portico; hit/);
    for (const answer of answers) expect(answered(answer)).toEqual(answered(answers[0]!));
    for (const road of roads) expect(lineOf(road)).toEqual(lineOf(roads[0]!));
    expect(callsOf()).toEqual(before);
  });

  test('is 304 for its tag', async () => {
    const [first] = await onAll({ path });
    const answers = await onAll({ path, headers: { 'If-None-Match': first?.headers['etag'] ?? '' } });
    for (const { status } of answers) expect(status).toBe(304);
    for (const answer of answers) expect(answered(answer)).toEqual(answered(answers[0]!));
  });

  test('is counted once each time', async () => {
    const [before, after] = [await onAll({ path }), await onAll({ path })];
    // Header and cookie are one account, which both share.
    expect(after.map(leftOf)).toEqual(before.map((answer) => leftOf(answer) - 2));
  });

  test.each(['no-cache', 'no-store'])('is not what %s gets', async (wish) => {
    const answers = await onAll({ path, headers: { 'Cache-Control': wish } });
    expect(answers[0]?.headers['cache-status']).toMatch(/^portico; fwd=/);
    for (const answer of answers) expect(answered(answer)).toEqual(answered(answers[0]!));
  });
});
