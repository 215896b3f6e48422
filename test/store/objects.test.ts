import { beforeEach, expect, test } from 'vitest';
import { FIRST_REV, NOTE } from '../../src/store/sealed.ts';
import { START_MS } from '../support/clock.ts';
import { objectShelf, type TestShelf } from '../support/object-storage.ts';
import { copyOf, FIRST, HOUR_MS, MINUTE_MS, next, noteOf, readIn } from './shelf.ts';

const ACCOUNT = 'account';
const REQUESTS = { name: 'requests', lengthMs: MINUTE_MS };
/** How long after its end a row is gone at the latest. */
const SWEPT_MS = 600_000;

let shelf: TestShelf;

beforeEach(() => {
  shelf = objectShelf({ now: () => START_MS });
});

const storage = () => shelf.storageOf(ACCOUNT);
const count = async (window = REQUESTS, many = 1) => (await shelf.count(ACCOUNT, window, many)).used;

test('each window is counted by itself until it ends, also by an object that was evicted', async () => {
  const other = { name: 'other', lengthMs: HOUR_MS };
  expect([await count(REQUESTS, 75), await count(other, 2)]).toEqual([75, 2]);
  shelf.putAway();
  expect(await count()).toBe(76);
  shelf.pass(MINUTE_MS);
  expect([await count(), await count(other)]).toEqual([1, 3]);
});

test('where the clock is set back, a window that was counted later is another one', async () => {
  expect([await count(), await count()]).toEqual([1, 2]);
  shelf.pass(-MINUTE_MS);
  expect([await count(), await count()]).toEqual([1, 2]);
});

test('nothing is written for a made-up credential but the window of its requests, in one row', async () => {
  await shelf.read(ACCOUNT, [NOTE, 'c:a1', 'r:key']);
  await shelf.swap(ACCOUNT, 'another note', next('two'));
  expect([storage().tables(), storage().rowsWritten, storage().alarmAt]).toEqual([[], 0, undefined]);
  for (let n = 0; n < 3; n++) await count();
  expect([storage().kept(), storage().rowsWritten]).toEqual([['count requests'], 3 + 1]); // and the alarm
});

test('the alarm deletes what has expired and nothing else, and with the last row all', async () => {
  await shelf.keep(ACCOUNT, FIRST_REV, noteOf(FIRST_REV, 2 * HOUR_MS), copyOf('v', 1, '', MINUTE_MS));
  await count();
  shelf.pass(MINUTE_MS + SWEPT_MS - 1);
  expect(storage().kept()).toEqual(['count requests', 'sealed c:a1', 'sealed note']);
  shelf.pass(1);
  expect(storage().kept()).toEqual(['sealed note']);
  shelf.pass(2 * HOUR_MS);
  expect([storage().tables(), storage().alarmAt]).toEqual([[], undefined]);
  expect(await shelf.swap(ACCOUNT, '', next('two'))).toBe('done');
  expect(storage().alarmAt).toBeDefined();
});

test('an object that was evicted does not postpone its alarm', async () => {
  await shelf.keep(ACCOUNT, FIRST_REV, FIRST, copyOf('v', 1, '', MINUTE_MS));
  const { alarmAt } = storage();
  shelf.pass(MINUTE_MS);
  shelf.putAway();
  await count();
  expect(storage().alarmAt).toBe(alarmAt);
});

/** As 0.2 has left it. */
const TABLE = `CREATE TABLE kept (
  kind TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, until INTEGER NOT NULL, value BLOB,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID`;

const leave = (kind: string, facts: string, until: number) =>
  storage().sql.exec(`INSERT INTO kept VALUES (?, '', ?, ?, NULL)`, kind, facts, until);

test('what 0.2 has left of an account is not found, and goes with its alarm', async () => {
  storage().sql.exec(TABLE);
  leave('window', '{"upTo":80,"endsAt":0}', START_MS + MINUTE_MS);
  leave('versions', '{}', Number.MAX_SAFE_INTEGER);
  await storage().setAlarm(START_MS + MINUTE_MS);
  shelf.putAway();
  expect(await readIn(shelf, ACCOUNT, NOTE, '')).toEqual([undefined, undefined]);
  expect(await count({ name: '', lengthMs: MINUTE_MS })).toBe(1);
  shelf.pass(2 * HOUR_MS);
  expect(storage().tables()).toEqual([]);
});

test('a secret is made once, no alarm deletes it, and that of 0.2 is found', async () => {
  const secret = shelf.secret(ACCOUNT);
  expect(secret.length).toBeGreaterThan(32);
  await shelf.keep(ACCOUNT, FIRST_REV, FIRST, copyOf('v', 1));
  shelf.pass(2 * HOUR_MS);
  shelf.putAway();
  expect([shelf.secret(ACCOUNT), storage().kept()]).toEqual([secret, ['secret']]);
  const old = objectShelf({ now: () => START_MS });
  old.storageOf(ACCOUNT).sql.exec(TABLE);
  old.storageOf(ACCOUNT).sql.exec(`INSERT INTO kept VALUES ('secret', '', '"of 0.2"', ${2 ** 50}, NULL)`);
  old.putAway();
  expect(old.secret(ACCOUNT)).toBe('of 0.2');
});
