import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createClient, streamOverview } from '../../client/src/index.ts';
import { times } from '../support/times.ts';
import { problemOf } from './helpers.ts';

const lineOf = (data: unknown) => ({ section: 'subscription', state: 'fresh', data });
const END = { complete: true };
const textOf = (lines: readonly unknown[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

/** All lines of a stream whose response is this one. */
async function linesOf(response: unknown): Promise<unknown[]> {
  const portico = createClient({ token: 'a', fetch: () => Promise.resolve(response as Response) });
  const lines: unknown[] = [];
  for await (const line of streamOverview(portico, 'getAccountOverview')) lines.push(line);
  return lines;
}

/** Text of any planes, with line ends and what separates lines elsewhere; and numbers, lists and records of it. */
const someData = fc.jsonValue({
  stringUnit: fc.constantFrom('a', '"', '\\', '\n', '\u2028', 'é', '€', '😀', '\u0000'),
});

/** The bytes, cut at these places. */
const cutUp = (whole: Uint8Array, places: readonly number[]) => {
  const cuts = [...new Set(places.map((place) => place % (whole.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...cuts].map((from, index) => whole.subarray(from, cuts[index]));
};

const streamed = (chunks: readonly Uint8Array[]) => {
  const queue = [...chunks];
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const next = queue.shift();
        if (next) controller.enqueue(next);
        else controller.close();
      },
    }),
  );
};

/** What React Native's `fetch` resolves with: it has no body to be read bit by bit. */
const bodiless = (text: string) => ({
  ok: true,
  status: 200,
  headers: new Headers(),
  text: () => Promise.resolve(text),
});

test('lines are the same wherever the network cuts them, also in the middle of a character', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(someData, { maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 40 }),
      async (values, cuts) => {
        const lines = values.map(lineOf);
        const whole = new TextEncoder().encode(textOf([...lines, END]));
        expect(await linesOf(streamed(cutUp(whole, cuts)))).toEqual(JSON.parse(JSON.stringify(lines)));
      },
    ),
    { numRuns: times(1000) },
  );
});

test('lines that come byte by byte are the same', async () => {
  const lines = [lineOf('é€😀'), lineOf(['\n', '\u2028'])];
  const whole = new TextEncoder().encode(textOf([...lines, END]));
  expect(await linesOf(streamed(Array.from(whole, (byte) => Uint8Array.of(byte))))).toEqual(lines);
});

test('a long line that comes in small pieces is looked at once', { timeout: 5000 }, async () => {
  const pieces = Array.from({ length: 2000 }, () => 'a'.repeat(8192));
  const texts = ['{"section":"subscription","data":"', ...pieces, `"}\n${textOf([END])}`];
  const whole = texts.map((text) => new TextEncoder().encode(text));
  const [line] = (await linesOf(streamed(whole))) as [{ readonly data: string }];
  expect(line.data).toHaveLength(2000 * 8192);
});

test('a stream that ends anywhere before its end throws', async () => {
  const whole = new TextEncoder().encode(textOf([lineOf('é'), END]));
  for (let length = 0; length < whole.length; length += 1)
    expect((await problemOf(linesOf(streamed([whole.subarray(0, length)])))).code, `${length}`).toBe(
      'connection_failed',
    );
});

describe('where fetch has no streams', () => {
  test('all is read, and handed out line by line', async () => {
    const lines = [lineOf('é€😀'), lineOf({ a: [1] })];
    expect(await linesOf(bodiless(textOf([...lines, END])))).toEqual(lines);
  });

  test.for([
    ['nothing', ''],
    ['no last line', textOf([lineOf(1)])],
    ['no end of the last line', textOf([lineOf(1), END]).trimEnd()],
    ['half a line', textOf([lineOf(1)]) + '{"sec'],
  ] as const)('%s is a stream that was cut off', async ([, text]) => {
    expect((await problemOf(linesOf(bodiless(text)))).code).toBe('connection_failed');
  });

  test('an answer that breaks off is thrown too', async () => {
    const response = { ...bodiless(''), text: () => Promise.reject(new TypeError('Network request failed')) };
    expect((await problemOf(linesOf(response))).code).toBe('connection_failed');
  });

  test('other calls work as well', async () => {
    const portico = createClient({
      token: 'a',
      fetch: () => Promise.resolve(bodiless('{"id":5}') as unknown as Response),
    });
    expect(await portico.getSubscription()).toEqual({ id: 5 });
  });
});
