import { describe, expect, test } from 'vitest';
import type { ConsoleEvent } from '../../src/console/event.d.ts';
import { Measuring } from '../../src/entry/node/console/figures.ts';
import { Recordings } from '../../src/entry/node/console/recorder.ts';
import { Watchers } from '../../src/entry/node/console/watchers.ts';
import { manualClock } from '../support/clock.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

function opened() {
  const clock = manualClock();
  const recordings = new Recordings();
  const measuring = new Measuring(() => Promise.resolve([]), recordings);
  const watchers = new Watchers({ clock, recordings, measuring, slowMs: 1000, isStoreShared: false });
  const unknown = (requestId: string) =>
    recordings.unknown({ requestId, operation: 'purchasePlan', account: undefined, hasKey: false, at: clock.now() });
  const seconds = async (count: number) => {
    for (let passed = 0; passed < count; passed++) {
      clock.advance(1000);
      await turn();
    }
  };
  return { clock, watchers, unknown, seconds };
}

async function eventFrom(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ConsoleEvent | undefined> {
  const { value } = await reader.read();
  const text = new TextDecoder().decode(value);
  return text.startsWith('data: ') ? (JSON.parse(text.slice('data: '.length)) as ConsoleEvent) : undefined;
}

const idsIn = (event: ConsoleEvent | undefined) => event?.unknown.map(({ requestId }) => requestId);

describe('a reader that stalls', () => {
  test('has nothing made for it, and is told of all when it reads again', async () => {
    const { watchers, unknown, seconds } = opened();
    const reader = watchers.watch().getReader();
    expect(await eventFrom(reader)).toMatchObject({ isFirst: true, unknown: [] });
    unknown('one');
    await seconds(10);
    unknown('two');
    await seconds(10);
    const event = eventFrom(reader);
    await turn();
    await seconds(1);
    expect(idsIn(await event)).toEqual(['one', 'two']);
    unknown('three');
    const other = eventFrom(reader);
    await turn();
    await seconds(1);
    expect(idsIn(await other)).toEqual(['three']);
    watchers.end();
  });

  test('is cut off after half a minute, and others are not', async () => {
    const { watchers, seconds } = opened();
    const stalled = watchers.watch().getReader();
    const good = watchers.watch().getReader();
    await Promise.all([eventFrom(stalled), eventFrom(good)]);
    let events = 0;
    const reading = (async () => {
      while (await eventFrom(good)) events++;
    })();
    await seconds(35);
    expect([watchers.size, events]).toEqual([1, 35]);
    await expect(stalled.read()).rejects.toThrow('reads nothing');
    watchers.end();
    await reading;
  });
});

test('nothing goes on when the last has left, and the next one is told anew', async () => {
  const { clock, watchers, unknown, seconds } = opened();
  unknown('before');
  const first = watchers.watch().getReader();
  await eventFrom(first);
  expect(clock.pending()).toBe(1);
  await first.cancel();
  expect([watchers.size, clock.pending()]).toEqual([0, 0]);
  await seconds(3);
  const second = watchers.watch().getReader();
  expect(await eventFrom(second)).toMatchObject({ isFirst: true, unknown: [{ requestId: 'before' }] });
  expect(clock.pending()).toBe(1);
  const last = second.read();
  await turn();
  watchers.end();
  expect(clock.pending()).toBe(0);
  expect(new TextDecoder().decode((await last).value)).toBe('event: stopping\ndata: {}\n\n');
  expect((await second.read()).done).toBe(true);
  expect(() => watchers.watch()).toThrow(expect.objectContaining({ code: 'not_ready' }));
});
