import { EventEmitter, on } from 'node:events';
import type { Clock } from '../../src/core/runtime.ts';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { COMMANDS } from '../../src/entry/node/metrics/store.ts';
import { RedisShelf } from '../../src/entry/node/redis/backend.ts';
import { testClock, type TestClock } from '../support/clock.ts';

export const WINDOW_MS = 65_000;

/** Pauses before it connects again are over at once, the longest too; what it says each second waits for `advance`. */
function clockOfShelf(): TestClock {
  const clock = testClock();
  let waiting = 2; // the first HELLO, and how long the start waits
  let isAdvancing = false;
  const after: Clock['after'] = (ms, run) => {
    if (ms >= 1_000 && (isAdvancing || waiting-- > 0)) return clock.after(ms, run);
    const soon = setImmediate(run);
    return () => clearImmediate(soon);
  };
  const advance = (ms: number) => {
    isAdvancing = true; // each HELLO sets the timer of the next
    clock.advance(ms);
    isAdvancing = false;
  };
  return { ...clock, after, advance };
}

/** An instance's way to a Redis, and what it says of it. `token`: it has used the store before. */
export async function openShelf(url: string, { clock = clockOfShelf(), token = '' } = {}) {
  const address = storeAddressOf(url);
  if (!address) throw new Error(`${url} is no address of a store`);
  const troubles = new Set<string>();
  const changes: boolean[] = [];
  const said = new EventEmitter();
  const shelf = new RedisShelf({
    address,
    clock,
    windowMs: WINDOW_MS,
    onCommand(command) {
      if (!COMMANDS.includes(command)) throw new Error(`${command} has no metrics`);
      setImmediate(() => said.emit('said', command)); // when it has learned from the reply
    },
    onTrouble({ reason }) {
      troubles.add(reason);
      said.emit('said', reason);
    },
    onChange(isThere) {
      changes.push(isThere);
      said.emit('said', isThere);
    },
  });
  shelf.token = token;
  /** Looks each time when the shelf has said something. */
  const until = async (isSo: () => boolean) => {
    const all = on(said, 'said');
    while (!isSo()) await all.next();
    await all.return?.();
  };
  /** Says HELLO once more. */
  const hello = async () => {
    const all = on(said, 'said');
    clock.advance(1_000);
    for await (const [what] of all) if (what === 'hello') return;
  };
  await shelf.opened;
  return { shelf, clock, troubles, changes, until, hello, close: () => shelf.close() };
}
