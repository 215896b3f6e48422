import { expect, test } from 'vitest';
import { expectShown, LISTED } from './cors.ts';
import { expectCommonHeaders } from './problem.ts';
import { openOverviews, overviewTable } from '../overviews/helpers.ts';
import { exampleInput } from '../support/examples.ts';
import { type RawResponse, requestText } from '../support/raw-client.ts';
import { cachedIds } from '../support/table.ts';
import type { World } from '../support/world.ts';

const LIMITED = { RATE_LIMIT_PER_MINUTE: '600' };

/** A 304 over a connection of its own, from a copy. */
async function unchanged({ token, call, raw }: World, path: string, origin?: string): Promise<RawResponse> {
  const { headers } = await call({ path, token });
  const answer = await raw(
    requestText({
      target: path,
      headers: [
        ['Authorization', `Token ${token}`],
        ['If-None-Match', headers['etag'] ?? ''],
        ...(origin === undefined ? [] : [['Origin', origin] as const]),
      ],
    }),
  );
  expect(answer).toMatchObject({ status: 304, body: '' });
  expectCommonHeaders({ ...answer, headers: without(/^(access-control|timing-allow)-/, answer.headers) });
  return answer;
}

const without = (pattern: RegExp, headers: RawResponse['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !pattern.test(name)));

/** With the whole's entry in `Server-Timing` alone. */
const bytesOf = ({ rawHeaders }: RawResponse) => {
  const lines = rawHeaders.map(([name, value]) => [name, name === 'Server-Timing' ? value.split(', ').at(-1) : value]);
  return `HTTP/1.1 304 Not Modified\r\n${lines.map((line) => `${line.join(': ')}\r\n`).join('')}\r\n`.length;
};

const ALL = [...overviewTable.map(([path]) => path), ...cachedIds.map((id) => exampleInput(id).path)];

test.each(ALL)('a 304 of %s has a head of 550 bytes at most', async (path) => {
  const world = await openOverviews(LIMITED);
  world.answerAll();
  expect(bytesOf(await unchanged(world, path))).toBeLessThanOrEqual(550);
});

test.each(ALL)('a 304 of %s to a page of another origin has a head of 850 bytes at most', async (path) => {
  const world = await openOverviews({ ...LIMITED, ALLOWED_ORIGINS: LISTED });
  world.answerAll();
  const answer = await unchanged(world, path, LISTED);
  expectShown(answer);
  expect(bytesOf(answer)).toBeLessThanOrEqual(850);
});
