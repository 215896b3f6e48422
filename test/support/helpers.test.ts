import * as z from 'zod';
import * as mini from 'zod/mini';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { differentBody } from '../idempotency/helpers.ts';
import { manualClock } from './clock.ts';
import { exampleOf } from './examples.ts';
import { call, stream } from './http.ts';
import { barrier, json, split, startUpstream, type ScriptedUpstream } from './scripted-upstream.ts';
import { cardHolder, cardLast4, email, leaksIn, secret } from './secrets.ts';

describe('the clock', () => {
  test('runs what falls due, in order, at its time', () => {
    const clock = manualClock(1000);
    const ran: string[] = [];
    const note = (name: string) => () => void ran.push(`${name}@${clock.now()}`);
    clock.after(20, note('b'));
    clock.after(10, () => clock.after(5, note('nested')));
    clock.after(20, note('c'));
    const cancel = clock.after(1, note('cancelled'));
    cancel();
    clock.advance(19);
    expect(ran).toEqual(['nested@1015']);
    clock.advance(1);
    expect(ran).toEqual(['nested@1015', 'b@1020', 'c@1020']);
    expect([clock.now(), clock.pending()]).toEqual([1020, 0]);
  });
});

describe('a different body', () => {
  const text = '{"title":"Early bird"}';

  test.each([
    ['has a member more where the schema takes it', mini.looseObject({ title: mini.string() }), { x_other: 1 }],
    ['has another value where it takes no member more', mini.strictObject({ title: mini.string() }), {}],
    [
      'has a member less where it takes no other value',
      mini.strictObject({ title: mini.optional(mini.literal('Early bird')) }),
      {},
    ],
  ])('%s', (_, schema, expected) => {
    const other: unknown = JSON.parse(differentBody(schema, text));
    expect(schema.safeParse(other).success).toBe(true);
    expect(other).not.toEqual(JSON.parse(text));
    expect(other).toMatchObject(expected);
  });

  test('is different in what counts', () => {
    const schema = mini.strictObject({ recaptcha: mini.string(), title: mini.string() });
    const other = differentBody(schema, '{"recaptcha":"a","title":"b"}', new Set(['recaptcha']));
    expect(JSON.parse(other)).toMatchObject({ recaptcha: 'a' });
  });
});

describe('secrets', () => {
  test('are unlike each other, usable, and found wherever they turn up', () => {
    const key = secret('key');
    expect(key).not.toBe(secret('key'));
    expect(key).toMatch(/^[!-~]{1,4096}$/);
    expect(z.email().safeParse(email()).success).toBe(true);
    for (const value of [key, email(), cardLast4, cardHolder]) expect(leaksIn(`a ${value} b`)).not.toEqual([]);
  });

  test.each(['', 'x', 'xy'])('are found in base64 and hex, after %j', (before) => {
    const text = Buffer.from(`${before}${secret()}`);
    expect(leaksIn(text.toString('base64'))).not.toEqual([]);
    expect(leaksIn(text.toString('base64url'))).not.toEqual([]);
    expect(leaksIn(text.toString('hex'))).not.toEqual([]);
  });

  test('a hash without a key gives a secret away', async () => {
    const key = secret();
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(key)));
    expect(leaksIn(`"account":"${digest.toString('hex')}"`)).toEqual([key]);
    expect(leaksIn('nothing in here: 4242, pk-, key')).toEqual([]);
  });
});

describe('exampleOf', () => {
  test('walks schemas without examples of their own', () => {
    const schema = z.object({
      literal: z.literal('a'),
      mode: z.enum(['x', 'y']).optional(),
      counts: z.record(z.string(), z.number()),
      either: z.union([z.boolean(), z.string()]).nullable(),
      list: z.array(z.object({ name: z.string() })),
      none: z
        .string()
        .nullable()
        .meta({ examples: [null] }),
    });
    expect(exampleOf(schema)).toEqual({
      literal: 'a',
      mode: 'x',
      counts: { key: 1 },
      either: true,
      list: [{ name: 'text' }],
      none: null,
    });
  });

  test('says what it cannot do', () => {
    expect(() => exampleOf(z.bigint())).toThrow('type bigint');
  });
});

describe('the client', () => {
  let server: ScriptedUpstream;
  beforeAll(async () => {
    server = await startUpstream();
  });
  afterAll(() => server.close());

  test('sends the path as it is, a credential and a body', async () => {
    server.once(() => true, json(200, '"yes"', { 'Set-Cookie': 'a=b' }));
    const answer = await call(server.url, { path: '/a/../b%2f//c?x=1', token: 't', body: { a: 1 } });
    expect(answer).toMatchObject({ status: 200, text: '"yes"', json: 'yes', cookies: ['a=b'] });
    expect(server.calls.at(-1)).toMatchObject({
      method: 'POST',
      target: '/a/../b%2f//c?x=1',
      headers: { authorization: 'Token t', 'content-type': 'application/json' },
      body: '{"a":1}',
    });
  });

  test('keeps its connections', async () => {
    server.on('GET /', json(200, 'not json'));
    const before = server.connections();
    for (let i = 0; i < 5; i += 1) expect((await call(server.url, { path: '/' })).json).toBeUndefined();
    // One more at most: when an answer has just been read, its connection may still count as busy.
    expect(server.connections()).toBeLessThanOrEqual(before + 1);
  });

  test('reads lines as they come', async () => {
    const gate = barrier();
    server.on('GET /lines', split(['HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n1\n2', '\n\n3\n'], [gate]));
    const { lines } = await stream(server.url, { path: '/lines' });
    const got: string[] = [];
    for await (const line of lines) {
      gate.release(); // Reached only because the first line came before the rest was written.
      got.push(line);
    }
    expect(got).toEqual(['1', '2', '', '3']);
  });
});
