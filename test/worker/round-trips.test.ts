import { afterEach, beforeEach, expect, test } from 'vitest';
import { transaction } from '../batch/helpers.ts';
import { barrier, type Call, hold, reply, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf } from '../support/versioned-upstream.ts';
import { World } from './world.ts';

const TWENTY = Array.from({ length: 20 }, (_, n) => transaction(n + 1));
const OTHERS = TWENTY.slice(1);

let world: World;
/** What the object is asked, in order; what renews a lease on a busy machine waits for no reply. */
let asked: string[];
let token: string;

const note = (method: string) => void (method !== 'change' && asked.push(method));

beforeEach(async () => {
  world = new World(await startUpstream());
  asked = [];
  token = secret();
  world.before = async (_, method) => note(method);
});

afterEach(() => world.upstream.close());

test('a batch of twenty for a new credential makes three round trips, one after the other', async () => {
  const gate = barrier();
  world.before = async (_, method) => {
    note(method);
    if (asked.length > 2 && method === 'save') await gate.arrive();
  };
  const answered = world.isolate()(TWENTY, token);
  await gate.count(OTHERS.length);
  expect(asked).toEqual(['snapshot', 'save', ...OTHERS.map(() => 'save')]);
  gate.release();
  expect((await answered).status).toBe(200);
  await world.idle();
  expect(asked).toHaveLength(21);
});

test.each(['its own', "another isolate's"])('one of twenty hits on %s copies makes one', async (whose) => {
  const [ask, other] = [world.isolate(), world.isolate()];
  await (whose === 'its own' ? ask : other)(TWENTY, token);
  await world.idle();
  asked = [];
  expect((await ask(TWENTY, token)).status).toBe(200);
  await world.idle();
  expect(asked).toEqual(['snapshot']);
  expect(world.callsOf(token)).toHaveLength(20);
});

test('a batch that joins a call gives back its lease, for which that call waits', async () => {
  const ask = world.isolate();
  const [first = '', second = ''] = TWENTY;
  const held = barrier();
  const isFirst = (call: Call) => isOf(token, call) && call.path === first;
  world.upstream.once(isFirst, reply(hold(held), world.answer()));
  const batch = ask([first, second], token);
  await held.reached;
  const hasPolled = barrier();
  const calls: number[] = [];
  world.before = async (_, method) => {
    if (method === 'snapshot') void hasPolled.arrive();
    if (method === 'save') calls.push(world.callsOf(token).length);
  };
  const read = ask([second], token);
  await hasPolled.count(2);
  held.release();
  expect((await batch).status).toBe(200);
  expect((await read).status).toBe(200);
  await world.idle();
  expect(calls).toEqual([1, 1, 2]);
});
