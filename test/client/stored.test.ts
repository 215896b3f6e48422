import { describe, expect, test } from 'vitest';
import { type CopyStore, keepCopies, type Portico } from '../../client/src/index.ts';
import { hold, isConditional, json, openStandIn, revalidated, settled } from './helpers.ts';

const ITEM = 'portico-copies';
const read = (portico: Portico, id = 1) => portico.getTransaction({ id });

/** A phone whose app can be started again, with an account and its key, on the same store, which takes its time. */
function openPhone() {
  const { gateway, clientWith } = openStandIn();
  gateway.on('*', revalidated);
  const items = new Map<string, string>();
  const written: string[] = [];
  const work = { underWay: 0 };
  const taking = async <T>(act: () => T) => {
    work.underWay += 1;
    await settled();
    work.underWay -= 1;
    return act();
  };
  const store: CopyStore = {
    getItem: (name) => taking(() => items.get(name) ?? null),
    setItem: (name, value) => taking(() => items.set(name, value) && written.push(value)),
  };
  const start = (account: string, token: string | undefined = `key-of-${account}`, most?: number) => {
    const copies = keepCopies({ store, account, most });
    return { copies, portico: clientWith({ token, copies }) };
  };
  return {
    gateway,
    clientWith,
    start,
    written,
    stored: () => items.get(ITEM) ?? '',
    asked: () => gateway.calls.map(isConditional),
    /** When all is written. */
    rest: async () => {
      do await settled();
      while (work.underWay > 0);
    },
  };
}

describe('copies in a store', () => {
  test('are there when the app starts again, and name no key', async () => {
    const phone = openPhone();
    phone.gateway.on('*', json(200, { id: 1 }, { etag: '"1"' }), json(304, '', { etag: '"1"' }));
    const first = await read(phone.start('ann').portico);
    await phone.rest();
    expect(await read(phone.start('ann').portico)).toEqual(first);
    expect(phone.asked()).toEqual([false, true]);
    expect(phone.written[1]).toContain('/transaction/1/');
    expect(phone.written.join()).not.toMatch(/key-of|Token/);
  });

  test('are as many as was said, written one after another, the last state last', async () => {
    const phone = openPhone();
    const { portico } = phone.start('ann', 'a', 4);
    await Promise.all([1, 2, 3, 4, 5].map((id) => read(portico, id)));
    await phone.rest();
    const ids = Array.from(phone.stored().matchAll(/\["\S+?transaction\/(\d)\/"/g), ([, id]) => id);
    expect(ids).toEqual(['2', '3', '4', '5']);
  });
});

describe('another account', () => {
  test('that starts the app finds nothing, and what was there is overwritten at its first read', async () => {
    const phone = openPhone();
    await read(phone.start('ann').portico);
    await phone.rest();
    expect(await read(phone.start('bob').portico)).toMatchObject({ of: 'Token key-of-bob' });
    expect(phone.asked()).toEqual([false, false]);
    await phone.rest();
    expect(phone.written[2]).toBe('["bob",[]]');
  });

  test('that the key becomes after a first write finds nothing', async () => {
    const phone = openPhone();
    await read(phone.start('ann').portico);
    await phone.rest();
    let token = 'key-of-ann';
    const portico = phone.clientWith({ token: () => token, copies: phone.start('ann').copies });
    await portico.updateReferralConfig({ mode: 'credits' });
    token = 'key-of-bob';
    await read(portico);
    expect([phone.asked(), phone.stored()]).toEqual([[false, false, false], '']);
  });

  test('that the key of a client becomes finds nothing, and what was there is overwritten before it reads', async () => {
    const phone = openPhone();
    let token = 'one';
    const portico = phone.clientWith({ token: () => token, copies: phone.start('ann').copies });
    await read(portico);
    await phone.rest();
    token = 'two';
    const held = hold(revalidated);
    phone.gateway.once('*', held.answer);
    const two = read(portico);
    await phone.gateway.arrived(2);
    expect(phone.stored()).toBe('');
    held.release();
    expect(await two).toMatchObject({ of: 'Token two' });
    token = 'one';
    await read(portico);
    await phone.rest();
    expect([phone.asked(), phone.stored()]).toEqual([[false, false, false], '']); // and stays so
  });
});

describe('a sign-out', () => {
  test('by `clear` overwrites them, and nothing is stored from then on', async () => {
    const phone = openPhone();
    const { copies, portico } = phone.start('ann');
    await read(portico);
    await copies.clear();
    expect(phone.stored()).toBe('');
    await read(portico);
    await phone.rest();
    expect([phone.stored(), phone.asked()]).toEqual(['', [false, false]]);
  });

  test('by the answer itself overwrites them too', async () => {
    const phone = openPhone();
    const { portico } = phone.start('ann');
    await read(portico);
    await portico.response('deleteSession');
    await phone.rest();
    expect(phone.stored()).toBe('');
  });

  test('by `clear` rejects where the store does', async () => {
    const store = { getItem: () => null, setItem: () => Promise.reject(new Error('full')) };
    await expect(keepCopies({ store, account: 'ann' }).clear()).rejects.toThrow('full');
  });

  test('by `clear` while a read is under way does not leave what that one brings', async () => {
    const phone = openPhone();
    const { copies, portico } = phone.start('ann');
    const held = hold(revalidated);
    phone.gateway.once('*', held.answer);
    const one = read(portico);
    await phone.gateway.arrived(1);
    await copies.clear();
    held.release();
    await one;
    await phone.rest();
    expect(phone.stored()).toBe('');
  });

  test.for([
    ['a sign-out', (portico: Portico) => portico.deleteSession({ everywhere: true })],
    ['a sign-in', (portico: Portico) => portico.createSession({ token: 'other' })],
  ] as const)('of a session: %s overwrites them before it is sent', async ([, act]) => {
    const phone = openPhone();
    const page = phone.clientWith({ token: undefined, copies: phone.start('ann').copies });
    await read(page);
    await phone.rest();
    expect(phone.stored()).toContain('/transaction/1/');
    phone.gateway.once('*', hold().answer);
    void act(page);
    await phone.gateway.arrived(2);
    expect(phone.stored()).toBe('');
  });
});

const failing = () => {
  throw new Error('broken');
};

const FAILING: readonly (readonly [string, CopyStore])[] = [
  ['cannot be read', { getItem: failing, setItem: () => undefined }],
  ['cannot be written', { getItem: () => null, setItem: failing }],
  ['has something else in it', { getItem: () => '<html>', setItem: () => undefined }],
];

test.for(FAILING)('a store that %s: there are copies all the same, for as long as the app runs', async ([, store]) => {
  const { gateway, clientWith } = openStandIn();
  gateway.on('*', revalidated);
  const portico = clientWith({ copies: keepCopies({ store, account: 'ann' }) });
  await read(portico);
  await read(portico);
  expect(gateway.calls.map(isConditional)).toEqual([false, true]);
});
