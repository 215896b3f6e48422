import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { Exchanges } from '../../src/gateway/exchanges.ts';
import type { UpstreamCall } from '../../src/upstream/call.ts';
import type { Exchange, Exchanged } from '../../src/upstream/hooks.ts';
import { manualClock, START_MS } from '../support/clock.ts';
import { keepingLogger } from '../support/gateway.ts';

/** Calls of one account that wait for an exchange at the same time: over a socket nobody could tell when they do. */
const open = (forSeconds?: number) => {
  const clock = manualClock();
  const asked: { readonly signal: AbortSignal; readonly end: (given: Exchanged) => void }[] = [];
  const exchange: Exchange = (_, { signal }) =>
    new Promise((resolve) => {
      asked.push({ signal, end: resolve });
    });
  const exchanges = new Exchanges(exchange, { clock, logger: keepingLogger([]) });
  const begin = (endsAfterMs: number) => {
    const controller = new AbortController();
    const context = { credential: 'key', waitUntil: () => undefined };
    const call = { account: 'account', context, controller, endsAt: clock.now() + endsAfterMs };
    const prepared = exchanges.prepare(call as unknown as UpstreamCall); // all that is looked at
    prepared.catch(() => undefined);
    return { controller, prepared };
  };
  const end = (at: number, token: string) =>
    asked[at]?.end({ headers: { 'X-Token': token }, ...(forSeconds !== undefined && { forSeconds }) });
  return { clock, asked, begin, end };
};

const turn = () => new Promise((resolve) => setImmediate(resolve));

const LATE = { code: 'upstream_timeout', particulars: { fault: 'not_sent' } };

describe('an exchange that several calls wait for', () => {
  test('goes on when the call that began it has left', async () => {
    const { asked, begin, end } = open(60);
    const [first, ...others] = [begin(3_000), begin(3_000), begin(3_000)];
    first?.controller.abort(new Error('left'));
    await expect(first?.prepared).rejects.toThrow('left');
    end(0, 'a');
    for (const { prepared } of others) expect(await prepared).toMatchObject({ headers: ['x-token', 'a'] });
    expect(asked).toHaveLength(1);
  });

  test('ends when the last one has left', async () => {
    const { asked, begin } = open(60);
    const calls = [begin(3_000), begin(3_000)];
    const reason = GatewayError.of('upstream_timeout', { fault: 'timeout' });
    for (const { controller } of calls) controller.abort(reason);
    for (const { prepared } of calls) await expect(prepared).rejects.toMatchObject(LATE);
    await turn();
    expect(asked.map(({ signal }) => signal.aborted && (signal.reason as unknown))).toEqual([reason]);
    begin(3_000);
    expect(asked).toHaveLength(2);
  });

  test('has the time of the request that began it, however many join it', async () => {
    const { clock, asked, begin, end } = open(60);
    const first = begin(3_000);
    clock.advance(2_000);
    const second = begin(3_000);
    clock.advance(999);
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([false]);
    clock.advance(1);
    for (const { prepared } of [first, second]) await expect(prepared).rejects.toMatchObject(LATE);
    const third = begin(3_000);
    end(1, 'b');
    expect(await third.prepared).toMatchObject({ headers: ['x-token', 'b'] });
    expect(clock.now()).toBe(START_MS + 3_000);
    expect(clock.pending()).toBe(0);
  });

  test('is for the one alone that began it, if it says nothing of a time', async () => {
    const { asked, begin, end } = open();
    const calls = [begin(3_000), begin(3_000)];
    end(0, 'a');
    expect(await calls[0]?.prepared).toMatchObject({ headers: ['x-token', 'a'] });
    await turn();
    end(1, 'b');
    expect(await calls[1]?.prepared).toMatchObject({ headers: ['x-token', 'b'] });
    expect(asked).toHaveLength(2);
  });
});
