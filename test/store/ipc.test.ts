import { expect, it } from 'vitest';
import { Accounts } from '../../src/store/accounts.ts';
import type { Next } from '../../src/store/backend.ts';
import { type Note, NO_NOTE } from '../../src/store/note.ts';
import { manualClock } from '../support/clock.ts';
import type { Copy } from '../../src/store/copies.ts';
import { FirstProcess, sharingCopies } from '../support/ipc.ts';
import { storeContract } from './contract.ts';

storeContract('workers that ask the first process', () => {
  const clock = manualClock();
  const first = new FirstProcess(() => clock.now());
  const copies = new Map<string, Copy>();
  const open = () => new Accounts({ backend: sharingCopies(first.worker(), copies), clock, maxBytes: 8_388_608 });
  return { instances: [open(), open()], clock, pass: (ms) => clock.advance(ms) };
});

const NOW = 1_800_000_000_000;
const ACCOUNT = 'account';

const next = (all: string, others: Partial<Next> = {}): Next => ({
  note: { ...NO_NOTE, all } satisfies Note,
  lifeMs: 1_000,
  ...others,
});

it('a note that was replaced through one worker is there for the other, and not replaced by who has seen the one before', async () => {
  const first = new FirstProcess(() => NOW);
  const [one, other] = [first.worker(), first.worker()];
  const [before, same] = await Promise.all([one.look(ACCOUNT), other.look(ACCOUNT)]);
  expect(same.note).toEqual(before.note);
  expect(await one.swap(ACCOUNT, before, next('2'))).toBe('done');
  expect(one.peek(ACCOUNT)?.note.all).toBe('2');
  expect(await other.swap(ACCOUNT, same, next('3'))).toBe('other');
  expect(await other.look(ACCOUNT)).toEqual(await one.look(ACCOUNT));
  expect(await other.look(ACCOUNT)).toMatchObject({ note: { all: '2' } });
});

it('a worker that knows a note is told no more than its number, and has the same object', async () => {
  const first = new FirstProcess(() => NOW);
  const worker = first.worker();
  const known = await worker.look(ACCOUNT);
  first.sent.length = 0;
  expect((await worker.look(ACCOUNT)).note).toBe(known.note);
  expect(first.sent).toEqual([`[["look","${ACCOUNT}",${String(known.seen)}]]`, `[${String(known.seen)}]`]);
});

it('a record goes with its note, to all workers, until its time is over', async () => {
  let now = NOW;
  const first = new FirstProcess(() => now);
  const [one, other] = [first.worker(), first.worker()];
  const seen = await one.look(ACCOUNT);
  const held = { nonce: 'n', record: { fingerprint: 'f', outcome: { status: 201, text: '{}', at: NOW } } } as const;
  await one.swap(ACCOUNT, seen, next('2', { record: { key: 'k', held, lifeMs: 1_000 } }));
  expect(await other.look(ACCOUNT, [], 'k')).toMatchObject({ note: { all: '2' }, held });
  expect(await one.look(ACCOUNT, [], 'k')).toMatchObject({ note: { all: '2' }, held });
  now += 1_000;
  expect((await other.look(ACCOUNT, [], 'k')).held).toBeUndefined();
});

it('what is asked while a message has no answer goes together in the next, and each has the answer to its own question', async () => {
  const first = new FirstProcess(() => NOW);
  const worker = first.worker();
  const window = { name: 'w', lengthMs: 60_000 };
  const asked = [1, 2, 3].map((many) => worker.count(ACCOUNT, window, many));
  await new Promise(setImmediate);
  asked.push(...[4, 5].map((many) => worker.count(ACCOUNT, window, many)));
  expect((await Promise.all(asked)).map(({ used }) => used)).toEqual([1, 3, 6, 10, 15]);
  expect(first.sent.map((text) => (JSON.parse(text) as unknown[]).length)).toEqual([3, 3, 2, 2]);
});
