import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { Together } from '../../src/entry/node/redis/together.ts';

describe('what is asked for together', () => {
  let sent: string[];
  let replies: PromiseWithResolvers<void>[];
  let together: Together<number, string>;

  beforeEach(() => {
    sent = [];
    replies = [];
    together = new Together(async (name, items) => {
      sent.push(`${name} ${items.join()}`);
      const reply = Promise.withResolvers<void>();
      replies.push(reply);
      await reply.promise;
      return items.map((item) => `${name} ${item}`);
    });
  });

  it('goes in one call for each name, and each gets its own result', async () => {
    const all = [together.add('a', 1), together.add('b', 2), Promise.resolve().then(() => together.add('a', 3))];
    await turn();
    expect(sent).toEqual(['a 1,3', 'b 2']);
    for (const { resolve } of replies) resolve();
    expect(await Promise.all(all)).toEqual(['a 1', 'b 2', 'a 3']);
  });

  it('waits for an earlier call of the same name, and for no other', async () => {
    const first = together.add('a', 1);
    await turn();
    const later = [together.add('a', 2), together.add('b', 3)];
    await turn();
    later.push(together.add('a', 4));
    expect(sent).toEqual(['a 1', 'b 3']);
    for (const { resolve } of replies) resolve();
    expect(await first).toBe('a 1');
    await expect.poll(() => sent).toEqual(['a 1', 'b 3', 'a 2,4']);
    replies.at(-1)?.resolve();
    expect(await Promise.all(later)).toEqual(['a 2', 'b 3', 'a 4']);
  });

  it('fails together, and later ones are sent all the same', async () => {
    const failing = [together.add('a', 1), together.add('a', 2)];
    await turn();
    const later = together.add('a', 3);
    replies[0]?.reject(new Error('gone'));
    for (const result of await Promise.allSettled(failing)) expect(result.status).toBe('rejected');
    await expect.poll(() => sent).toEqual(['a 1,2', 'a 3']);
    replies[1]?.resolve();
    expect(await later).toBe('a 3');
  });

  it('is no more than sixteen in one call, in the order asked', async () => {
    const all = Array.from({ length: 40 }, (_, i) => together.add('a', i));
    for (const call of [0, 1, 2]) {
      await expect.poll(() => sent.length).toBe(call + 1);
      replies[call]?.resolve();
    }
    expect(sent.map((text) => text.split(',').length)).toEqual([16, 16, 8]);
    expect(await Promise.all(all)).toEqual(Array.from({ length: 40 }, (_, i) => `a ${i}`));
  });
});
