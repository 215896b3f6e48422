import { describe, expect, test } from 'vitest';
import { createClient, streamOverview } from '../../client/src/index.ts';
import { gistThrown, openStandIn, streamed, thrownBy } from './helpers.ts';

const ACCOUNT = 'GET /bff/v1/account-overview';
const LINE = '{"section":"subscription","state":"fresh","data":{"plan":1}}\n';
const LAST = '{"complete":true}\n';
const ONE = { section: 'subscription', state: 'fresh', data: { plan: 1 } };
const NEVER = new Promise(() => undefined);
const TERMINATED = new TypeError('terminated');

type Pieces = Parameters<typeof streamed>[0];

/** An overview that comes in these pieces. */
function openStream(...pieces: Pieces) {
  const standIn = openStandIn();
  standIn.gateway.on(ACCOUNT, streamed(pieces));
  return { ...standIn, stream: (options = {}) => streamOverview(standIn.portico, 'getAccountOverview', {}, options) };
}

/** What comes until the stream ends, and what it ends with. */
async function collected(lines: AsyncIterable<unknown>) {
  const all: unknown[] = [];
  try {
    for await (const line of lines) all.push(line);
    return { lines: all };
  } catch (thrown) {
    return { lines: all, thrown };
  }
}

test.for([
  ['in the middle of a line', [LINE + LINE.slice(0, 20), TERMINATED]],
  ['between lines', [LINE, TERMINATED]],
  ['before its last line, and ends well', [LINE]],
  ['in its last line', [LINE + LAST.slice(0, 5)]],
  ['before the end of its last line', [LINE + LAST.trimEnd()]],
  ['by a line that is no JSON', [`${LINE}<html>\n`]],
  ['by a line that is no object', [`${LINE}null\n`]],
] as const)('a stream that is cut off %s throws, after what has come', async ([, pieces]) => {
  const { gateway, stream } = openStream(...pieces);
  const { lines, thrown } = await collected(stream());
  expect(lines).toEqual([ONE]);
  expect(await gistThrown(Promise.reject(thrown as Error))).toBe('connection_failed 0');
  expect([thrown, gateway.calls.length]).toMatchObject([{ retryable: true, outcome: undefined }, 1]);
});

test.for([
  ['empty lines are passed over', [`\n${LINE}\n${LAST}`]],
  ['what comes after the last line counts for nothing', [LINE + LAST, LINE, 'nonsense\n']],
  ['whoever has its last line misses nothing where it is cut off after that', [LINE + LAST, TERMINATED]],
] as const)('%s', async ([, pieces]) => {
  expect(await collected(openStream(...pieces).stream())).toEqual({ lines: [ONE] });
});

test('a loop that is left hangs up, by an error of its own too, which is thrown as it is', async () => {
  const { gateway, stream } = openStream(LINE, NEVER);
  for await (const line of stream()) {
    expect(line).toEqual(ONE);
    break;
  }
  await gateway.calls[0]!.left;
  const error = new Error('of the page');
  const looped = async () => {
    for await (const _ of stream()) throw error;
  };
  expect(await thrownBy(looped())).toBe(error);
  await gateway.calls[1]!.left;
});

test('an abort between lines rejects with its reason, and hangs up', async () => {
  const { gateway, stream } = openStream(LINE, NEVER);
  const controller = new AbortController();
  const lines = stream({ signal: controller.signal });
  expect((await lines.next()).value).toEqual(ONE);
  const next = thrownBy(lines.next());
  controller.abort('left');
  expect(await next).toBe('left');
  await gateway.calls[0]!.left;
  expect(gateway.calls).toHaveLength(1);
});

const lineOf = (data: unknown) => ({ section: 'subscription', state: 'fresh', data });
const textOf = (lines: readonly unknown[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');
const whole = (...lines: readonly unknown[]) => new TextEncoder().encode(textOf(lines) + LAST);
const linesIn = async (...pieces: Pieces) => (await collected(openStream(...pieces).stream())).lines;

test('cut lines: they are the same byte by byte, and cut anywhere, also in a character; a stream that ends at any byte before its end throws', async () => {
  const lines = [lineOf('é€😀'), lineOf(['\n', '\u2028'])];
  const bytes = whole(...lines);
  expect(await linesIn(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(lines);
  for (let length = 0; length < bytes.length; length += 1) {
    expect(await linesIn(bytes.subarray(0, length), bytes.subarray(length))).toEqual(lines);
    const { thrown } = await collected(openStream(bytes.subarray(0, length)).stream());
    expect(thrown, `${length}`).toMatchObject({ code: 'connection_failed' });
  }
});

test('a long line that comes in small pieces is looked at once', async () => {
  const pieces = Array.from({ length: 2000 }, () => 'a'.repeat(8192));
  const [line] = await linesIn('{"section":"subscription","data":"', ...pieces, `"}\n${LAST}`);
  expect((line as { readonly data: string }).data).toHaveLength(2000 * 8192);
});

/** What React Native's `fetch` resolves with: it has no body to be read bit by bit. */
const bodiless = (text: () => Promise<string>) => {
  const response = { ok: true, status: 200, headers: new Headers(), text } as unknown as Response;
  return createClient({ token: 'a', fetch: () => Promise.resolve(response) });
};

describe('where fetch has no streams', () => {
  test('all is read, and handed out line by line; other calls work as well', async () => {
    const portico = bodiless(() => Promise.resolve(LINE + LINE + LAST));
    expect(await collected(streamOverview(portico, 'getAccountOverview'))).toEqual({ lines: [ONE, ONE] });
    expect(await bodiless(() => Promise.resolve('{"id":5}')).getSubscription()).toEqual({ id: 5 });
  });

  test('what has no last line, or breaks off, is a stream that was cut off', async () => {
    for (const text of [() => Promise.resolve(LINE), () => Promise.reject(TERMINATED)]) {
      const { thrown } = await collected(streamOverview(bodiless(text), 'getAccountOverview'));
      expect(thrown).toMatchObject({ code: 'connection_failed' });
    }
  });
});
