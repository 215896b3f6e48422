import { describe, expect, test } from 'vitest';
import { createClient } from '../../client/src/index.ts';
import { barrier, bytes, hold, json, reply } from '../support/scripted-upstream.ts';
import { httpResponse } from '../support/steps.ts';
import { holdPauses, openClient, openStandIn, problem, SUBSCRIPTION, thrownBy } from './helpers.ts';
import { KINDS } from './kinds.ts';

const REASON = new Error('the user has left');

describe.for(KINDS)('%s', ([, act]) => {
  test('that is aborted before it begins sends nothing, and rejects with the reason', async () => {
    const { gateway, portico } = await openStandIn();
    expect(await thrownBy(act(portico, AbortSignal.abort(REASON)))).toBe(REASON);
    expect([gateway.calls.length, gateway.connections()]).toEqual([0, 0]);
  });

  test('that is aborted under way leaves, rejects with the reason, and sends nothing more', async () => {
    const pauses = holdPauses();
    const { gateway, portico } = await openStandIn();
    const gate = barrier();
    gateway.on(() => true, hold(gate));
    const controller = new AbortController();
    const thrown = thrownBy(act(portico, controller.signal));
    await gate.reached;
    controller.abort(REASON);
    expect(await thrown).toBe(REASON);
    await gateway.disconnected(gateway.calls[0]!);
    expect([gateway.calls.length, pauses.lengths]).toEqual([1, []]);
  });

  test('that is aborted in a wait ends it, rejects with the reason, and sends nothing more', async () => {
    const pauses = holdPauses();
    const { gateway, portico } = await openStandIn();
    gateway.on(() => true, problem(503, 'a_code', { retryable: true, retry_after: 30 }));
    const controller = new AbortController();
    const thrown = thrownBy(act(portico, controller.signal));
    const pause = await pauses.next();
    controller.abort(REASON);
    expect(await thrown).toBe(REASON);
    pause.end();
    expect(gateway.calls).toHaveLength(1);
  });
});

test('an abort in the middle of the body is one too', async () => {
  const { gateway, portico } = await openStandIn();
  const gate = barrier();
  gateway.on(SUBSCRIPTION, reply(bytes(httpResponse(200, { id: 1005 }).subarray(0, -4)), hold(gate)));
  const controller = new AbortController();
  const thrown = thrownBy(portico.getSubscription(undefined, { signal: controller.signal }));
  await gate.reached;
  controller.abort(REASON);
  expect(await thrown).toBe(REASON);
  await gateway.disconnected(gateway.calls[0]!);
  expect(gateway.calls).toHaveLength(1);
});

test.for([
  ['none', undefined, 'AbortError'],
  ['a text', 'gone', undefined],
  ['null', null, undefined],
] as const)('the reason may be %s', async ([, reason, name]) => {
  const { portico } = await openStandIn();
  const signal = AbortSignal.abort(reason);
  const thrown = await thrownBy(portico.getSubscription(undefined, { signal }));
  if (name === undefined) expect(thrown ?? null).toBe(reason);
  else expect(thrown).toMatchObject({ name });
});

test('whatever error fetch rejects with, it is the reason that is thrown', async () => {
  const signal = AbortSignal.abort(REASON);
  const portico = createClient({ fetch: () => Promise.reject(new TypeError('Aborted')), token: 'a' });
  expect(await thrownBy(portico.getSubscription(undefined, { signal }))).toBe(REASON);
});

test('where signals know no reason, it is the error of fetch', async () => {
  const error = new DOMException('Aborted', 'AbortError');
  const signal = { aborted: true, addEventListener() {}, removeEventListener() {} } as unknown as AbortSignal;
  const portico = createClient({ fetch: () => Promise.reject(error), token: 'a' });
  expect(await thrownBy(portico.getSubscription(undefined, { signal }))).toBe(error);
});

test('an abort after the answer is of no consequence', async () => {
  const { gateway, portico } = await openStandIn();
  gateway.on(SUBSCRIPTION, json(200, { id: 1005 }));
  const controller = new AbortController();
  const { signal } = controller;
  const answer = await portico.getSubscription(undefined, { signal });
  controller.abort(REASON);
  expect(answer).toEqual({ id: 1005 });
  expect(await portico.getSubscription()).toEqual(answer);
});

test('a read that its only asker leaves is left by the gateway as well', async () => {
  const { portico, upstream } = await openClient();
  const gate = barrier();
  upstream.on(SUBSCRIPTION, hold(gate));
  const controller = new AbortController();
  const thrown = thrownBy(portico.getSubscription(undefined, { signal: controller.signal }));
  await gate.reached;
  controller.abort(REASON);
  expect(await thrown).toBe(REASON);
  await upstream.disconnected(upstream.calls[0]!);
});
