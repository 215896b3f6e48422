import { beforeEach, describe, expect, it } from 'vitest';
import { RedisEngine } from '../../src/entry/node/redis/engine.ts';
import { Shares } from '../../src/entry/node/redis/shares.ts';

const token = (node: string, text: string) => node.padEnd(8, '-') + text;

/** Shares 0 and 1 are on one node, share 2 is on another. */
function threeShares(): Shares {
  const shares = new Shares(3);
  for (const [share, node] of ['one', 'one', 'two'].entries()) shares.learn(share, token(node, 'a'), 100);
  return shares;
}

/** Neither a window nor a session. */
const NOTHING = Array.from({ length: 6 }, () => null);

const accountOf = (share: number) => {
  for (let i = 0; ; i++) if (new Shares(4).of(`a${i}`) === share) return `a${i}`;
};

describe('shares', () => {
  it('get equal parts of the accounts', () => {
    const shares = new Shares(1_024);
    const found = Array.from({ length: 20_000 }, (_, i) => shares.of(`account ${i}`));
    expect(Math.min(...found)).toBeGreaterThanOrEqual(0);
    expect(new Set(found).size).toBe(1_024);
    expect(new Shares(1).of('any')).toBe(0);
  });

  it('know the last id, and how long ago it was asked for', () => {
    const shares = new Shares(1);
    expect(shares.idOf(0, 50)).toEqual({ token: '', agoMs: 0 });
    shares.learn(0, 'a', 60);
    expect(shares.idOf(0, 100.5)).toEqual({ token: 'a', agoMs: 41 });
    shares.learn(0, 'older', 59);
    expect(shares.idOf(0, 100)).toEqual({ token: 'a', agoMs: 40 });
  });

  it('do not doubt others at first, nor while nothing changes', () => {
    const shares = threeShares();
    expect(shares.learn(0, token('one', 'a'), 200)).toEqual([]);
  });

  it.each(['one', 'three'])('doubt those of a node where one has changed, to be on %s', (node) => {
    const shares = threeShares();
    expect(shares.learn(0, token(node, 'b'), 200)).toEqual([1]);
  });

  it('doubt those of the node to which one has moved too', () => {
    const shares = threeShares();
    expect(shares.learn(0, token('two', 'b'), 200)).toEqual([1, 2]);
  });

  it('are doubted until they answer what was asked later', () => {
    const shares = threeShares();
    shares.learn(0, token('one', 'b'), 200);
    shares.learn(1, token('one', 'a'), 201);
    expect(shares.isDoubted(1)).toBe(true);
    expect(shares.learn(1, token('one', 'a'), performance.now() + 1)).toEqual([]);
    expect(shares.isDoubted(1)).toBe(false);
  });

  it('are sent as unknown after a question without an answer, and take any id then', () => {
    const shares = threeShares();
    shares.learn(0, token('one', 'b'), 200);
    shares.missed(1);
    shares.missed(2); // not doubted: its next reply is enough
    expect([shares.idOf(1, performance.now()).token, shares.idOf(2, 300).token]).toEqual(['?', token('two', 'a')]);
    expect(shares.learn(1, token('one', 'c'), performance.now() + 1)).toEqual([]);
  });
});

describe('an engine of many shares', () => {
  let names: string[];
  let tokens: Map<string, string>;
  let hold: Promise<void>;
  let isSilent: boolean;
  let engine: RedisEngine;
  const look = async (share: number) =>
    (await engine.snapshot(accountOf(share), { keys: [{ key: 'k', tags: [] }] })).keys[0]?.version;

  beforeEach(() => {
    names = [];
    hold = Promise.resolve();
    isSilent = false;
    tokens = new Map([0, 1, 2, 3].map((share) => [`{${share}}`, token('one', 'a')]));
    engine = new RedisEngine({
      shares: new Shares(4),
      channelName: '',
      windowMs: 0,
      settlingMs: 0,
      onChange: () => undefined,
      onTrouble: () => undefined,
      connection: {
        isOpen: true,
        close: () => undefined,
        async run(name, { keys }) {
          const share = /{\d}/.exec(keys[0] ?? '')?.[0] ?? '';
          names.push(`${name} ${share}`);
          const id = tokens.get(share);
          await hold;
          if (id === undefined || (name === 'hello' && isSilent)) throw new Error('gone');
          return name === 'hello'
            ? [id, 0, 0]
            : [id, 0, 1, 1, 0, ...NOTHING, Buffer.from('version'), null, null, null, null];
        },
      },
    });
  });

  it('asks the other shares of a node where one has changed, and uses no reply from before', async () => {
    await engine.askIds();
    const { promise, resolve: go } = Promise.withResolvers<void>();
    hold = promise;
    const late = look(1);
    tokens.set('{0}', token('one', 'b'));
    hold = Promise.resolve();
    names = [];
    isSilent = true;
    expect(await look(0)).toBe('version');
    expect(names).toEqual(['snapshot {0}', 'hello {1}', 'hello {2}', 'hello {3}']);
    go();
    expect(await late).toBe(undefined);
    expect(await look(1)).toBe('version');
    engine.close();
  });

  it('is not there while a share does not answer, and asks it again', async () => {
    tokens.delete('{2}');
    await engine.askIds();
    expect(engine.isThere).toBe(false);
    tokens.set('{2}', token('one', 'a'));
    names = [];
    await expect.poll(() => engine.isThere, { timeout: 3_000 }).toBe(true);
    expect(names).toEqual(['hello {2}']);
    engine.close();
  });
});
