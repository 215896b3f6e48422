import { beforeEach, expect, test } from 'vitest';
import { FIRST_REV, NOTE } from '../../src/store/sealed.ts';
import { manualClock, START_MS } from '../support/clock.ts';
import { accountsOver, objectShelf, type TestShelf } from '../support/object-storage.ts';
import { storeContract } from './contract.ts';
import { copyOf, FIRST, HOUR_MS, MINUTE_MS, next, noteOf, objectRules, readerOf, SWEPT_MS } from './object-rules.ts';

const ACCOUNT = 'account';

let shelf: TestShelf;

const stored = () => shelf.storageOf(ACCOUNT).kept();

const objects = () => ({
  shelf,
  pass: (ms: number) => shelf.pass(ms),
  putAway: () => shelf.putAway(),
  kept: stored,
});

beforeEach(() => {
  shelf = objectShelf({ now: () => START_MS });
});

storeContract('the objects of accounts', () => {
  const clock = manualClock();
  const its = objectShelf({ now: () => clock.now() });
  const pass = (ms: number) => {
    its.pass(ms);
    clock.advance(ms);
  };
  return { instances: [accountsOver(its, clock), accountsOver(its, clock)], clock, pass };
});

objectRules(async () => ({ objects: objects(), account: ACCOUNT }));

test('nothing is written for a made-up credential but the window of its requests, in one row', async () => {
  await shelf.read(ACCOUNT, [NOTE, 'c:a1', 'r:key']);
  const { rowsWritten, alarmAt } = shelf.storageOf(ACCOUNT);
  expect([shelf.storageOf(ACCOUNT).tables(), rowsWritten, alarmAt]).toEqual([[], 0, undefined]);
  for (let n = 0; n < 3; n++) await shelf.count(ACCOUNT, { name: 'requests', lengthMs: MINUTE_MS }, 1);
  expect(stored()).toEqual(['count requests']);
  expect(shelf.storageOf(ACCOUNT).rowsWritten).toBe(3 + 1); // and the alarm
});

test('the alarm deletes what has expired and nothing else, and with the last row all', async () => {
  await shelf.keep(ACCOUNT, FIRST_REV, noteOf(FIRST_REV, 2 * HOUR_MS), copyOf('v', 1, '', MINUTE_MS));
  await shelf.count(ACCOUNT, { name: 'requests', lengthMs: MINUTE_MS }, 1);
  shelf.pass(MINUTE_MS + SWEPT_MS - 1);
  expect(stored()).toEqual(['count requests', 'sealed c:a1', 'sealed note']);
  shelf.pass(1);
  expect(stored()).toEqual(['sealed note']);
  shelf.pass(2 * HOUR_MS);
  expect([shelf.storageOf(ACCOUNT).tables(), shelf.storageOf(ACCOUNT).alarmAt]).toEqual([[], undefined]);
  expect(await shelf.swap(ACCOUNT, '', next('two'))).toBe('done');
  expect(shelf.storageOf(ACCOUNT).alarmAt).toBeDefined();
});

test('an object that was evicted does not postpone its alarm', async () => {
  await shelf.keep(ACCOUNT, FIRST_REV, FIRST, copyOf('v', 1, '', MINUTE_MS));
  const { alarmAt } = shelf.storageOf(ACCOUNT);
  shelf.pass(MINUTE_MS);
  shelf.putAway();
  await shelf.count(ACCOUNT, { name: 'requests', lengthMs: MINUTE_MS }, 1);
  expect(shelf.storageOf(ACCOUNT).alarmAt).toBe(alarmAt);
});

test('where the clock is set back, a window that was counted later is another one', async () => {
  const count = async () => (await shelf.count(ACCOUNT, { name: 'requests', lengthMs: MINUTE_MS }, 1)).used;
  expect([await count(), await count()]).toEqual([1, 2]);
  shelf.pass(-MINUTE_MS);
  expect([await count(), await count()]).toEqual([1, 2]);
});

/** As 0.2 has left it. */
const TABLE = `CREATE TABLE kept (
  kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, until INTEGER NOT NULL, value BLOB,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID`;

const leave = (kind: string, facts: string, until: number) =>
  shelf.storageOf(ACCOUNT).sql.exec(`INSERT INTO kept VALUES (?, '', ?, ?, NULL)`, kind, facts, until);

test('what 0.2 has left of an account is not found, and goes with its alarm', async () => {
  const storage = shelf.storageOf(ACCOUNT);
  storage.sql.exec(TABLE);
  leave('window', '{"upTo":80,"endsAt":0}', START_MS + MINUTE_MS);
  leave('record', '{}', START_MS + HOUR_MS);
  leave('versions', '{}', Number.MAX_SAFE_INTEGER);
  await storage.setAlarm(START_MS + MINUTE_MS);
  shelf.putAway();
  expect(await readerOf(objects(), ACCOUNT)(NOTE, '')).toEqual([undefined, undefined]);
  expect((await shelf.count(ACCOUNT, { name: '', lengthMs: MINUTE_MS }, 1)).used).toBe(1);
  expect(await shelf.swap(ACCOUNT, '', next('one'))).toBe('done');
  shelf.pass(2 * HOUR_MS);
  expect(storage.tables()).toEqual([]);
});

test('tables with other names go with the alarm that their release has set', async () => {
  const storage = shelf.storageOf(ACCOUNT);
  storage.sql.exec('CREATE TABLE copies (key TEXT)');
  await storage.setAlarm(START_MS);
  shelf.pass(0);
  expect(storage.tables()).toEqual([]);
});

test('a secret is made once, and no alarm deletes it', async () => {
  const secret = shelf.secret(ACCOUNT);
  expect(secret.length).toBeGreaterThan(32);
  await shelf.keep(ACCOUNT, FIRST_REV, FIRST, copyOf('v', 1));
  shelf.pass(2 * HOUR_MS);
  shelf.putAway();
  expect([shelf.secret(ACCOUNT), stored()]).toEqual([secret, ['secret']]);
});

test('the secret that 0.2 has made is found', () => {
  shelf.storageOf(ACCOUNT).sql.exec(TABLE);
  leave('secret', '"a secret of 0.2"', Number.MAX_SAFE_INTEGER);
  shelf.putAway();
  expect(shelf.secret(ACCOUNT)).toBe('a secret of 0.2');
});
