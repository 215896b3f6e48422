import { openTimedWorld, PLAIN, type TimedWorld } from './helpers.ts';
import type { TextAnswer } from '../support/http.ts';
import { bodyOf, callOf, pathOf } from '../support/marked.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

export const GOOD = json(200, bodyOf(PLAIN, 1));

/** How long a call may wait for a slot: in a burst, and where a queue stands. */
export const burst = (ms: number) => ms === 1000;
export const standing = (ms: number) => ms === 50;

export const open = (slots: number) => openTimedWorld({ UPSTREAM_MAX_CONNECTIONS: String(slots) });

/** So many requests at once, no two of them equal. */
export const askMany = ({ ask }: TimedWorld, count: number, token?: string) =>
  Array.from({ length: count }, (_, nth) =>
    ask(PLAIN, { path: `${pathOf(PLAIN)}?nth=${nth}`, token: token ?? secret() }),
  );

export const statuses = async (asked: readonly Promise<TextAnswer>[]) =>
  (await Promise.all(asked)).map(({ status }) => status);

/** All of the slots are in use, by calls that a barrier holds. */
export const busyWorld = async (slots: number) => {
  const world = await open(slots);
  const gate = barrier();
  world.upstream.on(callOf(PLAIN), reply(hold(gate), GOOD));
  const busy = askMany(world, slots);
  await gate.count(slots);
  return { world, gate, busy };
};
