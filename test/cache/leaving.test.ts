import { describe, expect, test, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { hit, holdFirst, MISS, seen, requestOf } from './helpers.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { openSocket } from '../support/raw-client.ts';
import { barrier, hang, hold, json, reply } from '../support/scripted-upstream.ts';
import { openWorld, type World } from '../support/world.ts';

const ID: OperationId = 'getSubscription';

/** A client on a connection of its own, which waits for the call under way. */
const waiter = async (world: World) => {
  const socket = await openSocket(world.gateway.port);
  const waiting = world.store.lookups.next();
  await socket.write(requestOf(world, ID));
  await waiting;
  return socket;
};

/** The gateway has noticed that so many clients left. */
const noticed = ({ gateway }: World, left: number) =>
  vi.waitFor(() => expect(gateway.lines.filter(({ code }) => code === 'client_left')).toHaveLength(left), {
    interval: 1,
    timeout: 4000,
  });

describe('a reader who leaves', () => {
  test('does not cancel the call for the others', async () => {
    const world = await openWorld();
    const gate = barrier();
    holdFirst(world, ID, gate);
    const leaving = [await waiter(world), await waiter(world)];
    const staying = await waiter(world);
    await gate.reached;
    for (const socket of leaving) socket.destroy();
    await noticed(world, 2);
    gate.release();
    expect(await staying.readResponse()).toMatchObject({
      status: 200,
      body: bodyOf(ID, 1),
      headers: { 'cache-status': `${MISS}; collapsed` },
    });
    staying.destroy();
    expect(seen(await world.ask(ID))).toEqual([200, hit(30), 1]);
    expect(world.upstream.calls).toHaveLength(1);
  });

  test('cancels it when it is the last, and the next one asks anew', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(ID), hang(), json(200, bodyOf(ID, 2)));
    const sockets = [await waiter(world), await waiter(world)];
    const [held] = await world.upstream.waitForCalls(1);
    sockets[0]?.destroy();
    await noticed(world, 1);
    const late = await waiter(world);
    sockets[1]?.destroy();
    await noticed(world, 2);
    expect(world.upstream.calls).toHaveLength(1);
    late.destroy();
    await world.upstream.disconnected(held!);
    expect(seen(await world.ask(ID))).toEqual([200, MISS, 2]);
    expect(world.upstream.calls).toHaveLength(2);
  });

  test('with a stale copy in hand does not cancel the refresh behind it', async () => {
    const world = await openWorld();
    const gate = barrier();
    world.upstream.on(callOf(ID), json(200, bodyOf(ID, 1)), reply(hold(gate), json(200, bodyOf(ID, 2))));
    await world.ask(ID);
    world.advance(329);
    const served = await openSocket(world.gateway.port);
    await served.write(requestOf(world, ID));
    expect((await served.readResponse()).headers).toMatchObject({ 'cache-status': hit(-299) });
    served.destroy();
    await gate.reached;
    world.advance(1);
    const joined = await waiter(world);
    joined.destroy();
    await noticed(world, 1);
    const stored = world.store.saves.next();
    gate.release();
    await stored;
    expect(seen(await world.ask(ID))).toEqual([200, hit(30), 2]);
  });

  test('on its own, with no-store, cancels its call', async () => {
    const world = await openWorld();
    world.upstream.on(callOf(ID), hang());
    const socket = await openSocket(world.gateway.port);
    await socket.write(requestOf(world, ID).replace('\r\n\r\n', '\r\nCache-Control: no-store\r\n\r\n'));
    const [held] = await world.upstream.waitForCalls(1);
    socket.destroy();
    await world.upstream.disconnected(held!);
    await noticed(world, 1);
    expect([world.upstream.calls.length, world.store.saves.total]).toEqual([1, 0]);
  });
});
