import { expect, vi } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { type WatchedClock, watchedClock } from '../support/clock.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { type Env, openWorld, type World } from '../support/world.ts';

/** Never cached: each request for it is one upstream call. */
export const PLAIN: OperationId = 'getPendingPayment';

/** Never retried. */
export const WRITE: OperationId = 'createApiKey';

/** Pauses between attempts; every deadline of these tests is longer. */
export const isPause = (ms: number): boolean => ms <= 200;

export type TimedWorld = World<WatchedClock>;

/** A world on whose clock no pause passes by itself. */
export const openTimedWorld = (env: Env = {}): Promise<TimedWorld> => openWorld(env, { clock: watchedClock() });

type Asker = Pick<World, 'upstream' | 'ask'>;

/** So many writes at once, each of an account of its own, which the upstream answers with 500. */
const failing = async ({ upstream, ask }: Asker, times: number) => {
  upstream.once(({ method }) => method === 'POST', ...Array.from({ length: times }, () => json(500, '')));
  await Promise.all(Array.from({ length: times }, () => ask(WRITE, { token: secret() })));
};

/** After it the circuit is open, and the upstream's calls so far are forgotten. */
export async function openCircuit(world: Asker): Promise<void> {
  await failing(world, 25);
  world.upstream.calls.length = 0;
}

/** A world in which the circuit has just opened. */
export async function brokenWorld(env: Env = {}): Promise<World> {
  const world = await openWorld(env);
  await openCircuit(world);
  return world;
}

/** The gateway has noticed that so many clients left. */
export const noticed = ({ gateway }: Pick<World, 'gateway'>, left: number): Promise<void> =>
  vi.waitFor(() => expect(gateway.lines.filter(({ code }) => code === 'client_left')).toHaveLength(left), {
    interval: 1,
    timeout: 4000,
  });

/** How many upstream calls the gateway has tried for its last request, those that found no connection included. */
export const attemptsOf = ({ gateway }: Pick<World, 'gateway'>): unknown => gateway.lines.at(-1)?.upstream_calls;
