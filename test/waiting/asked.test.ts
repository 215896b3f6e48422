import { expect, test, vi } from 'vitest';
import { watchedClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { objectEngine } from '../support/object-storage.ts';
import { openWorld } from '../support/world.ts';
import { sharedStore } from '../store/shared-world.ts';
import { EVERYTHING, type NewWrite } from '../../src/store/store.ts';

const SECONDS = 20;
/** The pause of a wait that does not know all that it reads yet, and of one that does. */
const [FIRST_MS, LOOK_MS] = [1_000, 500];
const PATHS = ['/bff/v1/account-overview', '/bff/v1/billing-overview', exampleInput('getSubscription').path];

/** An instance over a store that tells of no changes, and another one, of which there is only what it does with the store. */
async function open() {
  const engine = objectEngine();
  const asked = vi.spyOn(engine, 'snapshot');
  const clock = watchedClock();
  const world = await openWorld({}, { clock, store: sharedStore({ engine, clock }) });
  const state = { mark: 1, waits: 0 };
  world.answerAll(() => state.mark);
  const set = (ms: number) => clock.lengths.filter((length) => length === ms).length;
  const wait = async (path: string) => {
    const { headers } = await world.call({ path, token: world.token });
    const before = set(FIRST_MS);
    const ask = { 'If-None-Match': headers['etag'] ?? '', Prefer: `wait=${SECONDS}` };
    const answer = world.call({ path, token: world.token, headers: ask });
    await vi.waitFor(() => expect(set(FIRST_MS)).toBeGreaterThan(before));
    state.waits++;
    return { answer };
  };
  const elapse = (ms: number) => {
    engine.pass(ms);
    clock.advance(ms);
  };
  /** Lets time pass until each wait has looked, and waits to look again. */
  const pass = async (ms: number) => {
    const before = set(LOOK_MS);
    elapse(ms);
    await vi.waitFor(() => expect(set(LOOK_MS)).toBe(before + state.waits));
  };
  const other = sharedStore({ engine, clock });
  const begin = async () => {
    const write = writeOf(asked.mock.calls[0]![0], clock.now());
    await other.beginWrite(write);
    return write;
  };
  return {
    ...world,
    asked,
    state,
    wait,
    elapse,
    pass,
    begin,
    end: (write: NewWrite) => other.endWrite(write, 'refused'),
  };
}

const writeOf = (account: string, now: number): NewWrite => ({
  account,
  owner: account,
  now,
  window: undefined,
  waitUntil: () => undefined,
  tags: [EVERYTHING],
  hasCopies: true,
  nonce: crypto.randomUUID(),
  endsAt: now + 10_000,
  until: now + 70_000,
  key: undefined,
  keyMs: 0,
  fingerprint: '',
  isPurchase: false,
});

test('requests of an account that wait ask a store that tells of nothing once a second, all together', async () => {
  const world = await open();
  for (const path of [...PATHS, PATHS[0]!]) await world.wait(path);
  await world.pass(FIRST_MS);
  const before = world.asked.mock.calls.length;
  for (let look = 0; look < 10; look++) await world.pass(LOOK_MS);
  expect(world.asked.mock.calls.length - before).toBe(5);
});

test.each(PATHS)('a wait for %s ends within a second of a write on another instance', async (path) => {
  const world = await open();
  const { answer } = await world.wait(path);
  await world.pass(FIRST_MS);
  await world.pass(LOOK_MS);
  const write = await world.begin();
  world.state.mark = 2;
  await world.end(write);
  await world.pass(LOOK_MS); // what the store said before is not old enough
  world.elapse(LOOK_MS);
  const { status, headers } = await answer;
  expect([status, headers['preference-applied']]).toEqual([200, `wait=${SECONDS}`]);
});

test('while a write is under way elsewhere nobody is told anything, and then all are', async () => {
  const world = await open();
  const waits = [];
  for (const path of PATHS) waits.push(await world.wait(path));
  await world.pass(FIRST_MS);
  const calls = world.upstream.calls.length;
  const [asked, write] = [world.asked.mock.calls.length, await world.begin()];
  world.elapse(LOOK_MS);
  await vi.waitFor(() => expect(world.asked.mock.calls.length).toBeGreaterThan(asked + 1)); // for all, and by one that was told
  expect(world.upstream.calls).toHaveLength(calls);
  world.state.mark = 2;
  await world.end(write);
  const answers = Promise.all(waits.map(({ answer }) => answer));
  const over = vi.fn();
  void answers.then(over);
  await vi.waitFor(() => {
    world.elapse(LOOK_MS / 5);
    expect(over).toHaveBeenCalled();
  });
  for (const { status, text } of await answers)
    expect([status, text]).toEqual([200, expect.stringContaining('"x_mark":2')]);
});
