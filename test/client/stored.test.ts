import { describe, expect, test, vi } from 'vitest';
import { type CopyStore, createClient, keepCopies, type Portico } from '../../client/src/index.ts';
import { barrier, type Call, hold, json, perCall, reply, type Step } from '../support/scripted-upstream.ts';
import { openStandIn } from './helpers.ts';

const ETAG = '"the same for all"';
const ITEM = 'portico-copies';

const revalidated: Step = perCall(({ headers }) =>
  headers['if-none-match'] === ETAG
    ? json(304, '', { etag: ETAG })
    : json(200, { of: headers['authorization'] ?? headers['cookie'] }, { etag: ETAG }),
);
const isConditional = ({ headers }: Call) => 'if-none-match' in headers;
const read = (portico: Portico, id = 1) => portico.getTransaction({ id });

/** A store, as `AsyncStorage` is one. */
function openStore() {
  const items = new Map<string, string>();
  const written: string[] = [];
  let look: (() => void) | undefined;
  const store: CopyStore = {
    getItem: (name) => Promise.resolve(items.get(name) ?? null),
    async setItem(name, value) {
      await Promise.resolve();
      items.set(name, value);
      written.push(value);
      look?.();
    },
  };
  return {
    store,
    stored: () => items.get(ITEM) ?? '',
    put: (value: string) => void items.set(ITEM, value),
    /** When so much has been written. */
    writes: (count: number) =>
      new Promise<readonly string[]>((resolve) => {
        look = () => written.length >= count && resolve(written);
        look();
      }),
  };
}

/** An app that can be started again: with an account and its key, on the store of this phone. */
async function openPhone() {
  const { gateway } = await openStandIn();
  gateway.on(() => true, revalidated);
  const phone = openStore();
  const start = (account: string, token: string | undefined = `key-of-${account}`) => {
    const copies = keepCopies({ store: phone.store, account });
    return { copies, portico: createClient({ url: gateway.url, token, copies }) };
  };
  return { ...phone, gateway, start };
}

type Phone = Awaited<ReturnType<typeof openPhone>>;

describe('copies in a store', () => {
  test('are there when the app starts again', async () => {
    const phone = await openPhone();
    const first = await read(phone.start('ann').portico);
    await phone.writes(2); // none of another account is there, and the copy
    expect(await read(phone.start('ann').portico)).toEqual(first);
    expect(phone.gateway.calls.map(isConditional)).toEqual([false, true]);
  });

  test('may be in a store that answers at once', async () => {
    const { gateway, clientWith } = await openStandIn();
    gateway.on(() => true, revalidated);
    const items = new Map<string, string>();
    const store = {
      getItem: (name: string) => items.get(name) ?? null,
      setItem: (name: string, value: string) => void items.set(name, value),
    };
    const start = () => clientWith({ copies: keepCopies({ store, account: 'ann' }) });
    await read(start());
    await vi.waitUntil(() => items.get(ITEM)?.includes('/transaction/1/'));
    await read(start());
    expect(gateway.calls.map(isConditional)).toEqual([false, true]);
  });

  test('name no key', async () => {
    const phone = await openPhone();
    phone.gateway.on(() => true, json(200, { id: 1 }, { etag: ETAG }));
    await read(phone.start('ann').portico);
    const written = await phone.writes(2);
    expect(written[1]).toContain('/transaction/1/');
    expect(written.join()).not.toMatch(/key-of|Token/);
  });

  test('are as many as was said', async () => {
    const phone = await openPhone();
    const copies = keepCopies({ store: phone.store, account: 'ann', most: 1 });
    const portico = createClient({ url: phone.gateway.url, token: 'a', copies });
    await read(portico, 1);
    await read(portico, 2);
    await phone.writes(3);
    expect(phone.stored()).toContain('/transaction/2/');
    expect(phone.stored()).not.toContain('/transaction/1/');
  });

  test('are written one after another, the last state last', async () => {
    const phone = await openPhone();
    const { portico } = phone.start('ann');
    await Promise.all([1, 2, 3, 4, 5].map((id) => read(portico, id)));
    await vi.waitUntil(() => phone.stored().includes('/transaction/5/'));
    for (const id of [1, 2, 3, 4, 5]) expect(phone.stored()).toContain(`/transaction/${id}/`);
  });
});

describe('another account', () => {
  test('that starts the app finds nothing, and what was there is overwritten at its first read', async () => {
    const phone = await openPhone();
    await read(phone.start('ann').portico);
    await phone.writes(2);
    expect(await read(phone.start('bob').portico)).toMatchObject({ of: 'Token key-of-bob' });
    expect(phone.gateway.calls.map(isConditional)).toEqual([false, false]);
    expect((await phone.writes(3))[2]).toBe('["bob",[]]');
  });

  test('that the key of a client becomes finds nothing, and what was there is overwritten before it reads', async () => {
    const phone = await openPhone();
    let token = 'one';
    const copies = keepCopies({ store: phone.store, account: 'ann' });
    const portico = createClient({ url: phone.gateway.url, token: () => token, copies });
    await read(portico);
    await phone.writes(2);
    token = 'two';
    const gate = barrier();
    phone.gateway.once(() => true, reply(hold(gate), revalidated));
    const two = read(portico);
    await gate.reached;
    expect(phone.stored()).toBe('');
    gate.release();
    expect(await two).toMatchObject({ of: 'Token two' });
    token = 'one';
    await read(portico);
    expect(phone.gateway.calls.map(isConditional)).toEqual([false, false, false]);
    expect(phone.stored()).toBe(''); // and stays so
  });
});

describe('a sign-out', () => {
  test('by `clear` overwrites them, and nothing is stored from then on', async () => {
    const phone = await openPhone();
    const { copies, portico } = phone.start('ann');
    await read(portico);
    await copies.clear();
    expect(phone.stored()).toBe('');
    await read(portico);
    await copies.clear();
    expect(phone.stored()).toBe('');
    expect(phone.gateway.calls.map(isConditional)).toEqual([false, false]);
  });

  test('by `clear` while a read is under way does not leave what that one brings', async () => {
    const phone = await openPhone();
    const { copies, portico } = phone.start('ann');
    const gate = barrier();
    phone.gateway.once(() => true, reply(hold(gate), revalidated));
    const one = read(portico);
    await gate.reached;
    await copies.clear();
    gate.release();
    await one;
    await copies.clear();
    expect(phone.stored()).toBe('');
  });

  test.for([
    ['a sign-out', (portico: Portico) => portico.deleteSession({ everywhere: true })],
    ['a sign-in', (portico: Portico) => portico.createSession({ token: 'other' })],
  ] as const)('of a session: %s overwrites them before it is sent', async ([, act]) => {
    const phone = await openPhone();
    const copies = keepCopies({ store: phone.store, account: 'ann' });
    const page = createClient({ url: phone.gateway.url, copies });
    await read(page);
    await phone.writes(2);
    const gate = barrier();
    phone.gateway.once(() => true, reply(hold(gate), json(200, {})));
    const done = act(page);
    await gate.reached;
    expect(phone.stored()).toBe('');
    gate.release();
    await done;
  });

  test.for([
    ['is signed out', () => undefined],
    ['has another account', (phone: Phone) => read(phone.start('bob').portico).then(() => phone.writes(4))],
  ] as const)('in another tab, which then %s: this one stores nothing again', async ([, goOn]) => {
    const phone = await openPhone();
    const [here, there] = [phone.start('ann'), phone.start('ann')];
    await read(here.portico, 1);
    await phone.writes(2);
    await there.copies.clear();
    await goOn(phone);
    await read(here.portico, 2);
    await read(here.portico, 2);
    await vi.waitFor(async () => {
      await read(here.portico, 2);
      expect(phone.gateway.calls.map(isConditional).at(-1)).toBe(false);
    });
    expect(phone.stored()).not.toContain('ann');
    expect(phone.stored()).not.toContain('/transaction/2/');
  });

  test('by `clear` rejects where the store does', async () => {
    const error = new Error('full');
    const store = { getItem: () => null, setItem: () => Promise.reject(error) };
    await expect(keepCopies({ store, account: 'ann' }).clear()).rejects.toBe(error);
  });
});

function failing(): never {
  throw new Error('broken');
}

const FAILING: readonly (readonly [string, CopyStore])[] = [
  ['cannot be read', { getItem: failing, setItem: () => undefined }],
  ['cannot be written', { getItem: () => null, setItem: failing }],
  ['has something else in it', { getItem: () => '<html>', setItem: () => undefined }],
];

describe('a store that fails', () => {
  test.for(FAILING)('%s: there are copies all the same, for as long as the app runs', async ([, store]) => {
    const { gateway, clientWith } = await openStandIn();
    gateway.on(() => true, revalidated);
    const portico = clientWith({ copies: keepCopies({ store, account: 'ann' }) });
    await read(portico);
    await read(portico);
    expect(gateway.calls.map(isConditional)).toEqual([false, true]);
  });

  test('that does not answer is waited for no longer than until an abort', async () => {
    const { gateway, clientWith } = await openStandIn();
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const getItem = () => {
      resolve();
      return new Promise<null>(() => undefined);
    };
    const portico = clientWith({ copies: keepCopies({ store: { getItem, setItem: failing }, account: 'ann' }) });
    const controller = new AbortController();
    const thrown = portico.getSubscription(undefined, { signal: controller.signal }).catch((error: unknown) => error);
    await asked;
    controller.abort('left');
    expect(await thrown).toBe('left');
    expect(gateway.calls).toEqual([]);
  });
});
