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

  it('goes at once where nothing is under way for its name', async () => {
    const all = [together.add('a', 1), together.add('b', 2)];
    expect(sent).toEqual(['a 1', 'b 2']);
    for (const { resolve } of replies) resolve();
    expect(await Promise.all(all)).toEqual(['a 1', 'b 2']);
    void together.add('a', 3);
    expect(sent.at(-1)).toBe('a 3');
  });

  it('goes in one call after the one under way, and each gets its own result', async () => {
    const all = [1, 2, 3].map((item) => together.add('a', item));
    expect(sent).toEqual(['a 1']);
    replies[0]?.resolve();
    await expect.poll(() => sent).toEqual(['a 1', 'a 2,3']);
    all.push(together.add('a', 4));
    replies[1]?.resolve();
    await expect.poll(() => sent).toEqual(['a 1', 'a 2,3', 'a 4']);
    replies[2]?.resolve();
    expect(await Promise.all(all)).toEqual(['a 1', 'a 2', 'a 3', 'a 4']);
  });

  it('fails together, and what comes later is sent all the same', async () => {
    const [first, ...failing] = [1, 2, 3].map((item) => together.add('a', item));
    replies[0]?.reject(new Error('gone'));
    await expect(first).rejects.toThrow('gone');
    await expect.poll(() => sent).toEqual(['a 1', 'a 2,3']);
    replies[1]?.reject(new Error('still gone'));
    for (const one of failing) await expect(one).rejects.toThrow('still gone');
    const later = together.add('a', 4);
    replies[2]?.resolve();
    expect(await later).toBe('a 4');
  });

  it('is no more than sixteen in one call, in the order asked', async () => {
    const all = Array.from({ length: 40 }, (_, i) => together.add('a', i));
    for (const call of [0, 1, 2, 3]) {
      await expect.poll(() => sent.length).toBe(call + 1);
      replies[call]?.resolve();
    }
    expect(sent.map((text) => text.split(',').length)).toEqual([1, 16, 16, 7]);
    expect(await Promise.all(all)).toEqual(Array.from({ length: 40 }, (_, i) => `a ${i}`));
  });
});
