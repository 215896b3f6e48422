import { describe, expect, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';
import { expectProblem } from '../http/problem.ts';
import { noticed, PLAIN } from './helpers.ts';
import { settled } from './layer.ts';
import { acceptedIn, askMany, burst, busyWorld, GOOD, open, standing, statuses } from './slots.ts';
import type { TextAnswer } from '../support/http.ts';
import { callOf } from '../support/marked.ts';
import { barrier, hold, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const overloaded = (answer: TextAnswer) => {
  const problem = expectProblem(answer, { status: 503, code: 'overloaded' });
  expect(problem).toMatchObject({ retry_after: 1, retryable: true });
  expect(problem.outcome).toBeUndefined();
};

describe('a call that finds no slot', () => {
  test('waits in a burst for up to a second', async () => {
    const { world, gate, busy } = await busyWorld(2);
    const late = world.ask(PLAIN);
    await world.clock.waits(burst);
    world.clock.advance(999);
    gate.release();
    expect(await late).toMatchObject({ status: 200 });
    await Promise.all(busy);
  });

  test.each(allOperations.map(({ id }) => id))('is refused after that, with nothing sent: %s', async (id) => {
    const { world, gate, busy } = await busyWorld(2);
    const late = world.ask(id);
    await world.clock.waits(burst);
    world.clock.advance(1000);
    overloaded(await late);
    expect(world.upstream.calls).toHaveLength(2);
    gate.release();
    await Promise.all(busy);
    expect(world.clock.pending()).toBe(0);
  });

  test('is refused after 50 ms where a queue has stood for longer than half a second', async () => {
    const { world, gate, busy } = await busyWorld(2);
    const first = world.ask(PLAIN, { token: secret() });
    await world.clock.waits(burst);
    world.clock.advance(500);
    const second = world.ask(PLAIN, { token: secret() });
    await world.clock.waits(burst, 2);
    world.clock.advance(1);
    const third = world.ask(PLAIN);
    await world.clock.waits(standing);
    world.clock.advance(50);
    overloaded(await third);
    gate.release();
    expect(await statuses([...busy, first, second])).toEqual([200, 200, 200, 200]);
    expect(world.upstream.calls).toHaveLength(4);
  });

  test('is a burst again once the queue has gone', async () => {
    const { world, gate, busy, accounts } = await busyWorld(2);
    const first = world.ask(PLAIN, { token: secret() });
    await world.clock.waits(burst);
    world.clock.advance(600);
    gate.release();
    await Promise.all([...busy, first]);
    const again = barrier();
    world.upstream.on(callOf(PLAIN), reply(hold(again), GOOD));
    const later = askMany(world, 3, accounts);
    await world.clock.waits(burst, 2);
    again.release();
    expect(await statuses(later)).toEqual([200, 200, 200]);
  });

  test('is part of a burst however long the calls before it take, while nobody waits', async () => {
    const { world, gate, busy } = await busyWorld(2);
    world.clock.advance(2000);
    const late = world.ask(PLAIN);
    await world.clock.waits((ms) => burst(ms) || standing(ms));
    expect(world.clock.lengths.filter(standing)).toEqual([]);
    gate.release();
    expect(await statuses([...busy, late])).toEqual([200, 200, 200]);
  });

  test('waits as in a burst while others wait only for their own share', async () => {
    const world = await open(16);
    const [hog, ...quiet] = await acceptedIn(world, 17);
    const gate = barrier();
    world.upstream.on(callOf(PLAIN), reply(hold(gate), GOOD));
    const hogs = askMany(world, 12, [hog!]); // four of them may be under way
    await gate.count(4);
    await world.clock.waits(burst, 8);
    world.clock.advance(400);
    const others = askMany(world, 16, quiet);
    await gate.count(16);
    await world.clock.waits((ms) => burst(ms) || standing(ms), 12);
    expect(world.clock.lengths.filter(standing)).toEqual([]);
    gate.release();
    expect(new Set(await statuses([...hogs, ...others]))).toEqual(new Set([200]));
  });

  test('leaves no trace when its client leaves', async () => {
    const { world, gate, busy } = await busyWorld(2);
    const leave = new AbortController();
    const { signal } = leave;
    const left = Array.from({ length: 3 }, () => settled(world.ask(PLAIN, { token: secret(), signal })));
    await world.clock.waits(burst, left.length);
    leave.abort();
    await Promise.all(left);
    await noticed(world, left.length);
    gate.release();
    await Promise.all(busy);
    expect(world.upstream.calls).toHaveLength(2);
    expect(world.clock.pending()).toBe(0);
    expect(await statuses(askMany(world, 10))).toEqual(Array.from({ length: 10 }, () => 200));
  });
});
