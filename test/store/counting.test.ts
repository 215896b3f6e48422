import { expect, test } from 'vitest';
import { Counting } from '../../src/store/shared/counting.ts';
import type { Engine, Question, SnapshotReply } from '../../src/store/shared/engine.ts';
import { MemoryAccounts } from '../../src/store/memory/accounts.ts';
import { manualClock } from '../support/clock.ts';

const LIMIT = 100;
const window = { name: 'w', lengthMs: 60_000, limit: LIMIT };
const owned = { account: 'account', owner: 'account' };

const settle = async () => {
  for (let n = 0; n < 20; n++) await Promise.resolve();
};

/** A store that counts as the scripts do, for one listener, and replies when it is told to. */
function world() {
  const clock = manualClock();
  const limits = new MemoryAccounts();
  const asked: Question[] = [];
  const replies: (() => void)[] = [];
  let used = 0;
  const snapshot = (_account: string, question: Question) => {
    asked.push(question);
    const begins = used === 0;
    used += question.count ?? 1;
    const half = Math.floor((LIMIT - used) / 2);
    const advance = begins || half < 1 ? undefined : Math.min(question.advance ?? 0, half);
    used += advance ?? 0;
    const use = { used, leftMs: 60_000, advance };
    return new Promise<SnapshotReply>((resolve) => {
      replies.push(() => resolve({ now: 0, cooldownMs: 0, keys: [], use }));
    });
  };
  const engine = { snapshot } as unknown as Engine;
  const counting = new Counting({ engine, clock, limits });
  const count = async () => limits.takeAdvance(owned, window) ?? counting.count(owned, window);
  /** Two requests: with the second one more are counted in advance. */
  const begin = async () => {
    for (let n = 0; n < 2; n++) {
      const use = count();
      await settle();
      replies[n]?.();
      await use;
    }
  };
  return { clock, limits, asked, replies, count, begin, used: () => used };
}

test('requests that come during a question are counted together in the next one, each in its own place', async () => {
  const { asked, replies, count } = world();
  const uses = [count(), count(), count(), count()];
  await settle();
  expect(asked).toHaveLength(1);
  replies[0]?.();
  await settle();
  replies[1]?.();
  expect((await Promise.all(uses)).map((use) => use.used)).toEqual([1, 2, 3, 4]);
  expect(asked.map(({ count: many }) => many)).toEqual([1, 3]);
});

test('what was counted in advance is used before the store is asked again', async () => {
  const { asked, count, begin } = world();
  await begin();
  for (let n = 0; n < 16; n++) expect((await count()).used).toBe(3 + n);
  expect(asked).toHaveLength(2);
  void count();
  await settle();
  expect(asked).toHaveLength(3);
});

test('late replies burn nothing: what they have counted in advance is used, and no more is asked for meanwhile', async () => {
  const { clock, asked, replies, count, used } = world();
  const first = count();
  await settle();
  replies[0]?.();
  await first;
  for (let n = 1; n < 5; n++) {
    const late = count();
    await settle();
    clock.advance(200);
    await settle();
    clock.advance(1);
    await late;
  }
  expect(asked.slice(1).map(({ advance }) => advance)).toEqual([16, 0, 0, 0]);
  for (const reply of replies.slice(1)) reply();
  await settle();
  expect(used()).toBe(1 + 17 + 3);
  for (let n = 0; n < 16; n++) await count();
  expect(asked).toHaveLength(5);
});

test('what was counted in advance is within the limit, whatever replies to other questions say meanwhile', async () => {
  const { limits, count, begin } = world();
  await begin();
  limits.learn(owned, window.name, { used: LIMIT + 10, endsAt: 60_000 });
  for (let n = 0; n < 16; n++) expect((await count()).used).toBeLessThanOrEqual(LIMIT);
});
