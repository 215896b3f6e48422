import { describe, expect, test } from 'vitest';
import { POISON } from './faults.ts';
import { READ } from './helpers.ts';
import type { TextAnswer } from '../support/http.ts';
import { bodyOf, callOf, markOf } from '../support/marked.ts';
import { barrier, bytes, hold, httpResponse, json, reply, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const PATH = '/api/v2/notification/';

const [MINE, YOURS] = ['mine', 'yours'] as const;

const good = (mark: string) => httpResponse(200, bodyOf(READ, mark));

const chunked = (mark: string) => {
  const body = Buffer.from(bodyOf(READ, mark));
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
  return Buffer.concat([Buffer.from(`${head}${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
};

const HALF_A_HEAD = 'HTTP/1.1 200 OK\r\nX-Swallowed: ';

/** What comes for one account and is followed by something that looks like an answer for the next. */
const POISONED: readonly (readonly [what: string, status: number, sent: readonly (string | Uint8Array)[]])[] = [
  ['an answer with a length', 200, [good(MINE), POISON]],
  ['an answer in chunks', 200, [chunked(MINE), POISON]],
  ['an answer, by half a head', 200, [good(MINE), HALF_A_HEAD]],
  ['an answer, by two more', 200, [good(MINE), POISON, POISON]],
  ['an answer, by an interim one', 200, [good(MINE), 'HTTP/1.1 103 Early Hints\r\n\r\n']],
  ['an answer, by bytes that are no HTTP', 200, [good(MINE), '\0\0\0\0']],
  ['a 204 without a length', 204, ['HTTP/1.1 204 No Content\r\n\r\n', POISON]],
  ['a 204 in chunks', 204, ['HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n', POISON]],
];

const stage = useWorld({ UPSTREAM_MAX_CONNECTIONS: '1', RATE_LIMIT_PER_MINUTE: '0' });

const ask = (token = secret()) => stage.call({ path: PATH, token });

const expectOwn = (answer: TextAnswer) => {
  expect([answer.status, markOf(answer.text)]).toEqual([200, YOURS]);
  const [mine, yours] = stage.upstream.calls;
  expect(yours?.socket).not.toBe(mine?.socket);
};

const answerYours = (step: Step) => stage.upstream.once(callOf(READ), step, json(200, bodyOf(READ, YOURS)));

describe.each(POISONED)('%s and followed by more', (_, status, sent) => {
  const whole = Buffer.concat(sent.map((part) => Buffer.from(part)));

  test('leaves nothing for the account that asks next', async () => {
    answerYours(bytes(whole));
    const mine = await ask();
    expect(mine.status).toBe(status);
    if (status === 200) expect(markOf(mine.text)).toBe(MINE);
    expectOwn(await ask());
  });

  test('leaves nothing for the account that was waiting for the connection', async () => {
    const gate = barrier();
    answerYours(reply(hold(gate), bytes(whole)));
    const mine = ask();
    await gate.reached;
    const yours = ask();
    await stage.call({ path: '/livez' }); // the gateway has had its turn
    gate.release();
    expect((await mine).status).toBe(status);
    expectOwn(await yours);
  });
});

test('what comes over a connection that nobody asked anything on is thrown away with it', async () => {
  const gate = barrier();
  answerYours(reply(bytes(good(MINE)), hold(gate), bytes(POISON)));
  const token = secret();
  const mine = await ask(token);
  gate.release();
  await stage.upstream.disconnected(stage.upstream.calls[0]!);
  expectOwn(await ask());
  expect(await ask(token)).toMatchObject({ status: 200, text: mine.text }); // from the cache
});
