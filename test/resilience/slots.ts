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

/** So many requests at once, no two of them equal; of these accounts in turn, or each of a stranger's. */
export const askMany = ({ ask }: TimedWorld, count: number, tokens?: readonly string[]) =>
  Array.from({ length: count }, (_, nth) =>
    ask(PLAIN, { path: `${pathOf(PLAIN)}?nth=${nth}`, token: tokens?.[nth % tokens.length] ?? secret() }),
  );

/** Accounts that the upstream has accepted: each has a share of its own. */
export const acceptedIn = async (world: TimedWorld, count: number): Promise<string[]> => {
  const tokens = Array.from({ length: count }, secret);
  world.upstream.on(callOf(PLAIN), GOOD);
  for (const token of tokens) await world.ask(PLAIN, { token });
  world.upstream.calls.length = 0;
  return tokens;
};

export const statuses = async (asked: readonly Promise<TextAnswer>[]) =>
  (await Promise.all(asked)).map(({ status }) => status);

/** All of the slots are in use, by calls of as many accounts that a barrier holds. */
export const busyWorld = async (slots: number) => {
  const world = await open(slots);
  const accounts = await acceptedIn(world, slots + 2);
  const gate = barrier();
  world.upstream.on(callOf(PLAIN), reply(hold(gate), GOOD));
  const busy = askMany(world, slots, accounts);
  await gate.count(slots);
  return { world, gate, busy, accounts, others: accounts.slice(slots) };
};
