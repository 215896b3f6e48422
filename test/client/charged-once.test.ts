import { expect, test } from 'vitest';
import { type Portico, PorticoProblem } from '../../client/src/index.ts';
import { goodAnswer } from '../support/marked.ts';
import { barrier, hold, json, perCall, reply, reset } from '../support/scripted-upstream.ts';
import { gistOf, openClient, PLAN, problemOf, PURCHASE, thrownBy } from './helpers.ts';

/** The gateway, which has the real records of keys; the upstream sees what is charged. */
async function openShop() {
  const world = await openClient();
  const gate = barrier();
  world.upstream.on(
    PURCHASE,
    reply(
      hold(gate),
      perCall((to) => goodAnswer(to, world.upstream.calls.length)),
    ),
  );
  return { ...world, gate, charged: () => world.upstream.callsTo(PURCHASE).length };
}

/** Again for as long as the first is under way, as a user would who presses the button again. */
async function persist(portico: Portico): Promise<unknown> {
  for (;;) {
    try {
      return await portico.purchasePlan(PLAN);
    } catch (error) {
      if (!(error instanceof PorticoProblem && error.code === 'idempotency_in_progress')) throw error;
    }
  }
}

test('a double click is one charge, and both get its answer', async () => {
  const { portico, gate, charged } = await openShop();
  const both = [portico.purchasePlan(PLAN), portico.purchasePlan(PLAN)];
  await gate.reached;
  gate.release();
  expect(await Promise.all(both)).toMatchObject([{ x_mark: 1 }, { x_mark: 1 }]);
  expect(charged()).toBe(1);
});

test('a purchase that its caller aborts and asks for again is charged once, and its answer is replayed', async () => {
  const { portico, gate, charged } = await openShop();
  const controller = new AbortController();
  const thrown = thrownBy(portico.purchasePlan(PLAN, { signal: controller.signal }));
  await gate.reached;
  controller.abort();
  expect(await thrown).toMatchObject({ name: 'AbortError' });
  const again = persist(portico);
  gate.release();
  expect(await again).toMatchObject({ x_mark: 1 });
  expect(charged()).toBe(1);
  expect(await portico.purchasePlan(PLAN)).toMatchObject({ x_mark: 2 }); // a new one
});

test('a purchase whose outcome nobody knows is not sent again within the minute, however often it is asked for', async () => {
  const { portico, upstream, charged } = await openShop();
  upstream.on(PURCHASE, reset());
  const thrown = [];
  for (let asked = 0; asked < 3; asked += 1) thrown.push(gistOf(await problemOf(portico.purchasePlan(PLAN))));
  expect(thrown).toEqual([
    expect.stringMatching(/ unknown$/),
    'outcome_unknown 409 unknown',
    'outcome_unknown 409 unknown',
  ]);
  expect(charged()).toBe(1);
});

test('a purchase that the upstream refuses is sent when it is asked for again', async () => {
  const { portico, upstream, gate, charged } = await openShop();
  gate.release();
  upstream.once(PURCHASE, json(402, {}));
  expect((await problemOf(portico.purchasePlan(PLAN))).status).toBe(402);
  expect(await portico.purchasePlan(PLAN)).toMatchObject({ x_mark: 2 });
  expect(charged()).toBe(2);
});
