import { describe, expect, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import { allOperations } from '../support/account-api.ts';
import { exampleBody } from '../support/examples.ts';
import { bodyOf, callOf, goodAnswer } from '../support/marked.ts';
import {
  bytes,
  close,
  flood,
  httpResponse,
  json,
  letRead,
  perCall,
  reply,
  type Step,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';

const READ = 'getSubscription';
const PURCHASE = 'purchasePlan';

const interim = (status: string, ...lines: readonly string[]) =>
  `HTTP/1.1 ${status}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;

const HINTS = interim('103 Early Hints', 'Link: </style.css>; rel=preload', 'Content-Length: 5');

const PASSED_OVER: Readonly<Record<string, readonly string[]>> = {
  'a 102': [interim('102 Processing')],
  'a 103': [HINTS],
  'a 103 without a reason': [interim('103')],
  'one that nobody knows': [interim('199 Whatever')],
  'several in a row': [interim('102 Processing'), interim('102 Processing'), HINTS],
};

const BROKEN: Readonly<Record<string, string>> = {
  'a 100': interim('100 Continue'),
  'a 100 that speaks of closing': interim('100 Continue', 'Connection: close'),
  'a 103 that speaks of closing': interim('103 Early Hints', 'Connection: close'),
  'a 100 of HTTP/1.0': interim('100 Continue').replace('1.1', '1.0'),
  'a 100 after a 103': HINTS + interim('100 Continue'),
};

const whole = (parts: readonly (Buffer | string)[]) => Buffer.concat(parts.map((part) => Buffer.from(part)));

const apart = (parts: readonly (Buffer | string)[]) => reply(...parts.flatMap((part) => [bytes(part), letRead()]));

const ARRIVING: Readonly<Record<string, (parts: readonly (Buffer | string)[]) => Step>> = {
  'in one packet': (parts) => bytes(whole(parts)),
  'each by itself': apart,
  'byte by byte': (parts) => apart(Array.from(whole(parts), (byte) => Buffer.of(byte))),
};

describe.each(Object.entries(PASSED_OVER))('%s before the answer, which nobody asked for', (_, interims) => {
  test.each(Object.entries(ARRIVING))('%s, is passed over, and the connection goes on', async (__, arriving) => {
    const world = await openWorld({ UPSTREAM_MAX_CONNECTIONS: '1' });
    const answerWith = (status: number, text: string) => arriving([...interims, httpResponse(status, text)]);
    world.upstream.on(callOf(READ), answerWith(200, bodyOf(READ, 1)));
    world.upstream.on(callOf(PURCHASE), answerWith(201, bodyOf(PURCHASE, 2)));
    for (const token of [secret(), secret()]) {
      expect(await world.ask(READ, { token })).toMatchObject({ status: 200, text: bodyOf(READ, 1) });
      expect(await world.ask(PURCHASE, { token })).toMatchObject({ status: 201, text: bodyOf(PURCHASE, 2) });
    }
    expect(world.upstream.calls).toHaveLength(4);
    expect(world.upstream.connections()).toBe(1);
  });
});

test.each(Object.entries(BROKEN))(
  '%s before the answer is a broken one, and its connection is given up',
  async (_, text) => {
    const world = await openWorld({ UPSTREAM_MAX_CONNECTIONS: '1' });
    world.upstream.on(callOf(READ), reply(bytes(text), json(200, bodyOf(READ, 1))));
    world.upstream.on(callOf(PURCHASE), reply(bytes(text), json(201, bodyOf(PURCHASE, 2))));
    expectProblem(await world.ask(READ), { status: 502, code: 'upstream_bad_response' });
    const purchase = expectProblem(await world.ask(PURCHASE), { status: 502, code: 'upstream_bad_response' });
    expect(purchase.outcome).toBe('unknown');
    expect(world.upstream.callsTo(callOf(PURCHASE))).toHaveLength(1);
    world.upstream.on(callOf(READ), json(200, bodyOf(READ, 3)));
    expect(await world.ask(READ)).toMatchObject({ status: 200, text: bodyOf(READ, 3) });
  },
);

test.each(allOperations.map(({ id }) => id))('interim answers do not break %s', async (id) => {
  const world = await openWorld();
  world.upstream.on(
    callOf(id),
    perCall((call) => reply(bytes(HINTS), goodAnswer(call, 1))),
  );
  expect(await world.ask(id)).toMatchObject({ text: bodyOf(id, 1) });
});

test('interim answers without end are a broken answer, and their connection is given up', async () => {
  const world = await openWorld();
  world.upstream.on(callOf(READ), flood(HINTS)).on(callOf(PURCHASE), flood(HINTS));
  expectProblem(await world.ask(READ), { status: 502, code: 'upstream_bad_response' });
  const purchase = expectProblem(await world.ask(PURCHASE), { status: 502, code: 'upstream_bad_response' });
  expect(purchase.outcome).toBe('unknown');
});

test('an interim answer without an end is a broken answer', async () => {
  const world = await openWorld();
  world.upstream.on(callOf(READ), bytes(interim('103 Early Hints', `X-Long: ${'x'.repeat(20_000)}`).trimEnd()));
  expectProblem(await world.ask(READ), { status: 502, code: 'upstream_bad_response' });
});

test('a connection that ends behind an interim answer broke before its answer', async () => {
  const world = await openWorld();
  world.upstream.on(callOf(READ), reply(bytes(HINTS), close()));
  expectProblem(await world.ask(READ), { status: 502, code: 'upstream_unreachable' });
});

test('a body in which something looks like an interim answer comes through', async () => {
  const world = await openWorld();
  const text = exampleBody(READ, { note: `HTTP/1.1 100 ${'x'.repeat(20_000)}` });
  const [before = '', after = ''] = text.split('HTTP/1.1 100');
  const head = httpResponse(200, text).toString('latin1').split('\r\n\r\n')[0] ?? '';
  world.upstream.on(callOf(READ), apart([`${head}\r\n\r\n`, before, 'HTTP/1.1 100', after]));
  expect(await world.ask(READ)).toMatchObject({ status: 200, text });
});
