import { Accounts } from '../../../src/store/accounts.ts';
import { SealedNotes } from '../../../src/store/sealed.ts';
import { randomOf } from '../random.ts';
import { type Heard, Instance } from './instance.ts';
import { Judge } from './judge.ts';
import { RedisNode } from './redis-node.ts';
import { VirtualTime } from './time.ts';
import { WINDOW_MS } from './times.ts';
import type { Tried, World } from './world.ts';

/** A store so far away, without any faults, and three instances that it has had for long enough to be relied on. */
async function steadyWorld({ awayMs, tried = { Accounts, SealedNotes } }: { awayMs: number; tried?: Tried }) {
  const time = new VirtualTime(Date.UTC(2026, 5, 9, 12));
  const judge = new Judge(time);
  const without: ReadonlySet<never> = new Set();
  const world: World = {
    time,
    random: randomOf(1),
    judge,
    tried,
    without,
    delay: () => awayMs / 2,
    refusing: 0,
    faultsUntil: 0,
    copyMs: 30_000,
  };
  const primary = new RedisNode('primary', true, time, without);
  const instances = ['one', 'two', 'three'].map((name) => new Instance(name, world, primary));
  await time.play(time.now + WINDOW_MS + 1_000);
  return { time, judge, instances };
}

/** Half a minute of 20 writes a second through one instance to a store 40 ms away. */
export async function underLoad(tried?: Tried) {
  const { time, instances } = await steadyWorld({ awayMs: 40, ...(tried && { tried }) });
  const [one] = instances;
  const begun = Array.from({ length: 6 }, () => 0);
  for (let i = 0; i < 600; i++) {
    time.after(i * 50, () => {
      void one?.write({ tags: ['a'] }).then((heard) => heard !== 'unavailable' && begun[Math.floor(i / 100)]!++);
    });
  }
  await time.play(time.now + 40_000);
  let after: Heard | undefined;
  void one?.write({ tags: ['a'] }).then((heard) => (after = heard));
  await time.play(time.now + 10_000);
  return { begun, after };
}

export const WINDOW = { name: 'requests', lengthMs: 60_000, limit: 50 };

/** How many requests are let through in each window, of more than its limit, by three instances. */
export async function letThrough(tried?: Tried): Promise<number[]> {
  const { time, instances } = await steadyWorld({ awayMs: 20, ...(tried && { tried }) });
  const counts = new Map<number, number>();
  for (let i = 0; i < 900; i++) {
    time.after(i * 150, () => {
      void instances[i % 3]?.count(WINDOW).then(({ used, endsAt }) => {
        const ends = Math.round(endsAt / 5_000);
        if (used <= WINDOW.limit) counts.set(ends, (counts.get(ends) ?? 0) + 1);
      });
    });
  }
  await time.play(time.now + 140_000);
  return [...counts.values()];
}
