import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { askAll, goodAfter, isHit, MISS, NO_STORE, raising, seen, UNKEPT, versioned } from './helpers.ts';
import { callOf, isCallTo, pathOf } from '../support/marked.ts';
import { barrier, hold, perCall, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds, partedBy, invalidatedReads, writeIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

const pairs = writeIds.flatMap((write) => invalidatedReads(write).map((read) => [write, read] as const));

describe.each(writeIds)('after %s', (write) => {
  test('what it touches is read anew, and nothing else', async () => {
    const world = await openWorld();
    versioned(world);
    await askAll(world, cachedIds);
    expect((await world.ask(write)).status).toBeLessThan(300);
    for (const id of cachedIds) {
      const expected = invalidatedReads(write).includes(id) ? [200, MISS, 2] : [200, isHit, 1];
      expect(seen(await world.ask(id)), id).toEqual(expected);
    }
    const reads = world.upstream.calls.length - 1;
    expect(reads).toBe(cachedIds.length + invalidatedReads(write).length);
  });

  test('other accounts keep what they have', async () => {
    const world = await openWorld();
    versioned(world);
    const token = secret();
    await askAll(world, cachedIds, { token });
    await world.ask(write);
    for (const answer of await askAll(world, cachedIds, { token })) expect(seen(answer)).toEqual([200, isHit, 1]);
  });
});

const forms = (id: OperationId, ids: readonly string[], query = '') =>
  ids.map((other) => pathOf(id).replace(/(12345|auth_91-a)/, other) + query);

interface ItemCase {
  readonly write: OperationId;
  readonly path: string;
  readonly read: OperationId;
  readonly touched: readonly string[];
  readonly others: readonly string[];
}

const ITEMS: readonly ItemCase[] = [
  {
    write: 'refreshSubuser',
    path: '/api/v2/subuser/05/refresh/',
    read: 'getSubuser',
    touched: [...forms('getSubuser', ['5', '05', '0005']), ...forms('getSubuser', ['5'], '?plan_id=3')],
    others: forms('getSubuser', ['6', '50', '15', '0', '00']),
  },
  {
    write: 'refreshSubuser',
    path: '/api/v2/subuser/0/refresh/',
    read: 'getSubuser',
    touched: forms('getSubuser', ['0', '000']),
    others: forms('getSubuser', ['1', '10']),
  },
  {
    write: 'refreshProxyList',
    path: '/api/v2/proxy/list/refresh/?plan_id=3',
    read: 'getSubuser',
    touched: [...forms('getSubuser', ['1', '2']), ...forms('getSubuser', ['2'], '?plan_id=4')],
    others: [],
  },
  {
    write: 'deleteIpAuthorization',
    path: '/api/v2/proxy/ipauthorization/7/?plan_id=3',
    read: 'getIpAuthorization',
    touched: [...forms('getIpAuthorization', ['7', '07']), ...forms('getIpAuthorization', ['7'], '?plan_id=3')],
    others: forms('getIpAuthorization', ['8', '70', 'a7', '7-']),
  },
  {
    write: 'deleteIpAuthorization',
    path: '/api/v2/proxy/ipauthorization/A_b-1/',
    read: 'getIpAuthorization',
    touched: forms('getIpAuthorization', ['A_b-1']),
    others: forms('getIpAuthorization', ['A_b-', '1']),
  },
];

test.each(ITEMS)('$write at $path touches that thing under all its names, and no other', async (item) => {
  const world = await openWorld();
  versioned(world);
  const askFor = (paths: readonly string[]) => Promise.all(paths.map((path) => world.ask(item.read, { path })));
  await askFor([...item.touched, ...item.others]);
  await world.ask(item.write, { path: item.path });
  for (const answer of await askFor(item.touched)) expect(seen(answer)).toEqual([200, MISS, 2]);
  for (const answer of await askFor(item.others)) expect(seen(answer)).toEqual([200, isHit, 1]);
});

describe.each(pairs)('%s and %s', (write, read) => {
  test('a slow read from before it is neither stored nor joined', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const gate = barrier();
    world.upstream.once(
      isCallTo(read),
      perCall((call) => goodAfter(gate, call, state.version)),
    );
    const slow = world.ask(read);
    await gate.reached;
    await world.ask(write);
    expect(seen(await world.ask(read))).toEqual([200, MISS, 2]);
    gate.release();
    expect(seen(await slow)).toEqual([200, 'portico; fwd=miss', 1]);
    expect(seen(await world.ask(read))).toEqual([200, isHit, 2]);
    expect(world.upstream.callsTo(isCallTo(read))).toHaveLength(2);
  });

  test('a slow read from before it that ends while it is under way is not stored', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const [readGate, writeGate] = [barrier(), barrier()];
    world.upstream.once(
      isCallTo(read),
      perCall((call) => goodAfter(readGate, call, state.version)),
    );
    world.upstream.once(callOf(write), reply(hold(writeGate), raising(state)));
    const slow = world.ask(read);
    await readGate.reached;
    const writing = world.ask(write);
    await writeGate.reached;
    readGate.release();
    expect(seen(await slow)).toEqual([200, 'portico; fwd=miss', 1]);
    writeGate.release();
    await writing;
  });

  test('a copy from before it is not answered while it is under way', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const gate = barrier();
    await world.ask(read);
    world.upstream.once(callOf(write), reply(hold(gate), raising(state)));
    const writing = world.ask(write);
    await gate.reached;
    expect(seen(await world.ask(read))).toEqual([200, UNKEPT, 1]);
    expect(world.upstream.callsTo(isCallTo(read))).toHaveLength(2);
    gate.release();
    await writing;
  });

  test('a read that began while it was under way is not kept', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const gate = barrier();
    world.upstream.once(callOf(write), reply(hold(gate), raising(state)));
    const writing = world.ask(write);
    await gate.reached;
    for (let i = 0; i < 2; i += 1) expect(seen(await world.ask(read))).toEqual([200, UNKEPT, 1]);
    gate.release();
    expect((await writing).status).toBeLessThan(300);
    expect(seen(await world.ask(read))).toEqual([200, MISS, 2]);
  });

  test('reads that begin while it is under way do not share a call', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const [writeGate, readGate] = [barrier(), barrier()];
    world.upstream.once(callOf(write), reply(hold(writeGate), raising(state)));
    world.upstream.on(
      isCallTo(read),
      perCall((call) => goodAfter(readGate, call, state.version)),
    );
    const writing = world.ask(write);
    await writeGate.reached;
    const readings = [world.ask(read), world.ask(read)];
    await readGate.count(2);
    readGate.release();
    for (const answer of await Promise.all(readings)) expect(seen(answer)).toEqual([200, UNKEPT, 1]);
    writeGate.release();
    await writing;
  });

  test('a copy from before it is there again where it was not sent', async () => {
    const world = await openWorld({}, { hasDoor: true });
    versioned(world);
    await world.ask(read);
    await world.door?.shut();
    expect(await world.ask(write)).toMatchObject({ status: 502, json: { code: 'upstream_unreachable' } });
    await world.door?.open();
    expect(seen(await world.ask(read))).toEqual([200, isHit, 1]);
  });

  test('a read that began while it was under way and ends after it is not kept', async () => {
    const world = await openWorld();
    const state = versioned(world);
    const [writeGate, readGate] = [barrier(), barrier()];
    world.upstream.once(callOf(write), reply(hold(writeGate), raising(state)));
    world.upstream.once(
      isCallTo(read),
      perCall((call) => goodAfter(readGate, call, state.version)),
    );
    const writing = world.ask(write);
    await writeGate.reached;
    const reading = world.ask(read);
    await readGate.reached;
    writeGate.release();
    await writing;
    readGate.release();
    expect(seen(await reading)).toEqual([200, 'portico; fwd=miss', 1]);
    expect(seen(await world.ask(read))).toEqual([200, MISS, 2]);
  });
});

/** Reads that are never cached; what is shared between them is only the call under way. */
const uncachedPairs = writeIds.flatMap((write) => partedBy(write).map((read) => [write, read] as const));

test.each(uncachedPairs)('after %s, %s does not join a call from before it', async (write, read) => {
  const world = await openWorld();
  const state = versioned(world);
  const gate = barrier();
  world.upstream.once(
    callOf(read),
    perCall((call) => goodAfter(gate, call, state.version)),
  );
  const slow = world.ask(read);
  await gate.reached;
  await world.ask(write);
  const reading = world.ask(read);
  await Promise.race([reading, world.store.lookups.next()]);
  gate.release();
  expect(seen(await reading)[2]).toBe(2);
  await slow;
});

test('after a write, who says no-store does not join a call from before it, not even under the same request id', async () => {
  const world = await openWorld();
  const state = versioned(world);
  const gate = barrier();
  const headers = { ...NO_STORE, 'X-Request-Id': 'the-same-for-all' };
  world.upstream.once(
    callOf('getReferralConfig'),
    perCall((call) => goodAfter(gate, call, state.version)),
  );
  const slow = world.ask('getReferralConfig', { headers });
  await gate.reached;
  await world.ask('updateReferralConfig', { headers: { 'X-Request-Id': 'the-same-for-all' } });
  const reading = world.ask('getReferralConfig', { headers });
  await Promise.race([reading, world.upstream.waitForCalls(3), world.ask('getSubscription')]);
  gate.release();
  expect(seen(await reading)).toEqual([200, 'portico; fwd=request', 2]);
  await slow;
});
