import { afterAll, beforeAll, expect, test } from 'vitest';
import { FIRST_REV, NOTE, type Shelf } from '../../src/store/sealed.ts';
import { newAccount } from '../store/contract.ts';
import { copyOf, FIRST, HOUR_MS, MINUTE_MS, next, noteOf, readIn, shelfContract } from '../store/shelf.ts';
import { call } from '../support/http.ts';
import { pack, unpack } from '../support/wire.ts';
import { complaintsIn, startWorkerd, type Workerd } from '../support/workerd.ts';

/** How long after its end a row is gone at the latest. */
const SWEPT_MS = 600_000;

let workerd: Workerd;
let passedMs = 0;

beforeAll(async () => {
  workerd = await startWorkerd({}, { entry: 'test/support/worker-of-objects.ts' });
});
afterAll(() => workerd.kill());

const post = async (path: string, value: unknown) => {
  const { status, text } = await call(workerd.url, { method: 'POST', path, body: pack(value) });
  if (status !== 200) throw new Error(text);
  return unpack(text);
};
const askBy =
  (isOfShelf: boolean, method: string) =>
  async (account: string, ...args: unknown[]): Promise<unknown> =>
    ((await post('/', { isOfShelf, account, method, args })) as { readonly said: unknown }).said;

/** That of a worker, which calls objects of accounts as they are deployed. */
const methods = ['read', 'swap', 'keep', 'count'].map((method) => [method, askBy(true, method)] as const);
const shelf = Object.fromEntries(methods) as unknown as Shelf;
const [kept, tables] = [askBy(false, 'kept'), askBy(false, 'tables')];
const [alarmIn, ring, secretOf] = [askBy(false, 'alarmIn'), askBy(false, 'ring'), askBy(false, 'secret')];

const pass = async (ms: number) => {
  await post('/pass', ms);
  passedMs += ms;
};

shelfContract('the objects of accounts in workerd', () => ({ shelf, pass }));

test('an object knows all that it has acknowledged after its process was killed, byte for byte', async () => {
  const account = newAccount();
  const value = new Uint8Array(400_000).map((_, n) => n * n);
  await shelf.swap(account, '', { ...next('one'), record: { name: 'r:key', value, lifeMs: HOUR_MS } });
  await shelf.keep(account, 'one.........', FIRST, copyOf('v', 1, 'text'));
  const secret = await secretOf(account);
  workerd = await workerd.restart();
  await post('/pass', passedMs);
  const [note, record, copy] = await readIn(shelf, account, NOTE, 'r:key', 'c:a1');
  expect([note, copy?.endsWith('text')]).toEqual(['one......... its text', true]);
  expect(record === Buffer.from(value).toString('latin1')).toBe(true);
  expect(await secretOf(account)).toBe(secret);
});

test('the alarm deletes what has expired, and with the last row all', async () => {
  const account = newAccount();
  await shelf.keep(account, FIRST_REV, noteOf(FIRST_REV, 3 * HOUR_MS), copyOf('v', 1, '', HOUR_MS));
  const inMs = Number(await alarmIn(account));
  expect([inMs > HOUR_MS - MINUTE_MS, inMs <= HOUR_MS + SWEPT_MS]).toEqual([true, true]);
  await pass(inMs);
  await ring(account);
  expect(await kept(account)).toEqual(['sealed note']);
  await pass(Number(await alarmIn(account)));
  await ring(account);
  expect([await tables(account), await alarmIn(account)]).toEqual([[], undefined]);
});

test('reads and refused changes leave nothing, and workerd has complained of nothing', async () => {
  const account = newAccount();
  await readIn(shelf, account, NOTE, 'r:key', 'c:a1');
  await shelf.swap(account, 'another note', next('two'));
  expect(await kept(account)).toEqual([]);
  expect(complaintsIn(workerd)).toEqual([]);
});
