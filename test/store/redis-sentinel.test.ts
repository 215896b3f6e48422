import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { manualClock } from '../support/clock.ts';
import { freePort } from '../support/ports.ts';
import { hasRedis, type OpenedStore, openRedisStore, PATIENCE, relyOn, SKIPPED } from '../support/redis.ts';
import { startSentinel, type TestSentinel } from '../support/sentinel.ts';
import { storeContract } from './contract.ts';

describe.skipIf(!hasRedis)(`Sentinel${SKIPPED}`, () => {
  let sentinel: TestSentinel;
  const opened: OpenedStore[] = [];
  const clock = manualClock();

  beforeAll(async () => {
    sentinel = await startSentinel();
    await relyOn(sentinel.primary);
  });
  afterEach(() => {
    for (const one of opened.splice(0)) one.close();
  });
  afterAll(() => sentinel.close());

  const open = async (url = sentinel.url, isPassing = false) => {
    const one = await openRedisStore(url, { clock, ...(isPassing && { redis: sentinel.primary }) });
    opened.push(one);
    return one;
  };

  describe('the contract', () => {
    let both: [OpenedStore, OpenedStore];

    beforeEach(async () => {
      both = [await open(sentinel.url, true), await open(sentinel.url, true)];
    });

    storeContract('of a store of two instances', () => {
      const [one, other] = both;
      const pass = async (ms: number) => {
        clock.advance(ms);
        await sentinel.primary.pass(ms);
      };
      return { instances: [one.store, other.store], clock, pass };
    });
  });

  it('is found through those of several sentinels that answer', async () => {
    const one = await open(sentinel.url.replace('@', `@127.0.0.1:${await freePort()},`));
    await one.until(true);
  });

  it('is not there where no sentinel answers, or none knows the name', async () => {
    for (const url of [sentinel.url.replace(/:\d+\//, `:${await freePort()}/`), `${sentinel.url}-other`]) {
      const { shelf, troubles } = await open(url);
      await vi.waitFor(() => expect([...troubles]).toEqual(['NO_SENTINEL']), PATIENCE);
      expect(shelf.isThere).toBe(false);
    }
  });

  it('is warned of where it would name another primary too soon', async () => {
    expect([...(await open()).troubles]).not.toContain('DOWN_AFTER');
    await sentinel.client.call('SENTINEL', 'SET', 'portico', 'down-after-milliseconds', '4999');
    const { troubles } = await open();
    await vi.waitFor(
      () => expect([...troubles].toSorted()).toEqual(['DOWN_AFTER', 'FEW_MIN_REPLICAS', 'LAG', 'NOT_PERSISTENT']),
      PATIENCE,
    );
    await sentinel.client.call('SENTINEL', 'SET', 'portico', 'down-after-milliseconds', '3600000');
  });

  it('gets the login of the address where it asks for one, and says what is wrong where it gets none', async () => {
    await sentinel.askForLogin();
    const one = await open();
    await one.until(true);
    const [wrong, none] = [
      await open(sentinel.url.replace('p%40ss', 'other')),
      await open(sentinel.url.replace(/\/\/.*@/, '//')),
    ];
    await vi.waitFor(
      () => expect([[...wrong.troubles], [...none.troubles]]).toEqual([['WRONGPASS'], ['NOAUTH']]),
      PATIENCE,
    );
  });

  it('leads to the replica when the primary is gone, which is another store', async () => {
    const one = await open();
    const { token } = one.shelf;
    await one.until(true);
    const note = { name: 'note', value: Buffer.from('twelve-bytes'), lifeMs: 600_000 };
    await one.shelf.swap('account', '', { note, isBeginning: true });
    expect(await sentinel.primary.client.call('WAIT', '1', '0')).toBe(1);
    await sentinel.primary.kill();
    await one.until(false);
    await sentinel.promote();
    await one.until(true);
    expect([one.shelf.token === token, one.shelf.reliableAt > one.shelf.now()]).toEqual([false, true]);
    expect((await one.shelf.read('account', ['note'])).values.map(String)).toEqual(['twelve-bytes']);
    expect([one.changes, one.troubles.has('ANOTHER_STORE')]).toEqual([[false, true], true]);
  });
});
