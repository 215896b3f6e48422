import { describe, expect, test } from 'vitest';
import { openBatch, responsesOf, transaction } from './helpers.ts';
import type { TextAnswer } from '../support/http.ts';
import { json } from '../support/scripted-upstream.ts';

const LIMIT = 1_000;
const openLimited = (env: Readonly<Record<string, string>> = {}) =>
  openBatch({ UPSTREAM_MAX_BODY_BYTES: String(LIMIT), ...env });

/** JSON of so many bytes. */
const sized = (bytes: number, char = 'x') => {
  const padding = bytes - '{"p":""}'.length;
  const wide = Math.floor(padding / Buffer.byteLength(char));
  return `{"p":"${char.repeat(wide)}${'x'.repeat(padding - wide * Buffer.byteLength(char))}"}`;
};

const statusesOf = (answer: TextAnswer) => responsesOf(answer).map(({ status }) => status);

/** Bytes of the bodies that were not refused for their size, as they were sent. */
const weightOf = (answer: TextAnswer) =>
  responsesOf(answer)
    .filter(({ status }) => status !== 413)
    .reduce((sum, { body }) => sum + Buffer.byteLength(JSON.stringify(body)), 0);

describe('the bodies of a batch', () => {
  test.each([
    ['of one byte a character', sized(300)],
    ['of two bytes a character', sized(300, 'é')],
    ['of four bytes a character', sized(300, '😀')],
  ])('together are no larger than one may be: equal ones %s', async (_, text) => {
    const world = await openLimited();
    expect(Buffer.byteLength(text)).toBe(300);
    world.on(transaction(1), json(200, text));
    const answer = await world.batch(Array.from({ length: 20 }, () => transaction(1)));
    expect(statusesOf(answer)).toEqual([200, 200, 200, ...Array.from({ length: 17 }, () => 413)]);
    expect(answer.text.split(text)).toHaveLength(4);
    expect(world.upstream.calls).toHaveLength(1);
  });

  test('may be as large as that to the byte, and an item that does not fit is a problem of its own', async () => {
    const world = await openLimited();
    for (const [id, bytes] of [400, 601, 600, 8].entries()) world.on(transaction(id), json(200, sized(bytes)));
    const answer = await world.batch([0, 1, 2, 3].map(transaction), { headers: { 'X-Request-Id': 'batch-1' } });
    expect(statusesOf(answer)).toEqual([200, 413, 200, 413]);
    expect(weightOf(answer)).toBe(LIMIT);
    expect(responsesOf(answer)[1]).toMatchObject({
      id: 'r1',
      body: {
        code: 'payload_too_large',
        status: 413,
        detail: expect.stringMatching(/alone/) as string,
        instance: transaction(1),
        request_id: 'batch-1',
        retryable: false,
      },
    });
    expect((await world.get(transaction(1))).status).toBe(200);
  });

  test('weigh what they are with the gateway’s links in them', async () => {
    const path = '/api/v2/payment/transaction/';
    const world = await openLimited({ PUBLIC_URL: `https://${'long-name.'.repeat(20)}example` });
    const page = { count: 9, next: `${world.upstream.url}${path}?page=3`, previous: null, results: [] };
    world.on(path, json(200, page));
    const answer = await world.batch(Array.from({ length: 5 }, () => path));
    expect(statusesOf(answer)).toEqual([200, 200, 200, 413, 413]);
    expect(weightOf(answer)).toBeLessThanOrEqual(LIMIT);
  });

  test('that are the upstream’s problems weigh as well', async () => {
    const world = await openLimited();
    world.on(transaction(1), json(400, { detail: 'y'.repeat(200) }));
    const answer = await world.batch(Array.from({ length: 20 }, () => transaction(1)));
    expect(statusesOf(answer)).toEqual([400, ...Array.from({ length: 19 }, () => 413)]);
  });
});
