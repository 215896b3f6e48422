import type { SessionId, Window } from '../../src/store/store.ts';
import { type Instance, type ReadAsk, type ReadDone, type Upstream, type Values } from './views-instance.ts';
import { oneOf, type Random, randomOf } from './random.ts';

/** What one of the instances does. Which session, key or session to end is picked from what is there by then. */
export type Act =
  | { readonly do: 'read'; readonly things: readonly string[]; readonly session?: number; readonly isCounted: boolean }
  | { readonly do: 'count' }
  | { readonly do: 'write'; readonly things: readonly string[]; readonly end: WriteKind; readonly hasKey: boolean }
  | { readonly do: 'replay'; readonly nth: number }
  | { readonly do: 'other' }
  | { readonly do: 'sign-out'; readonly nth: number; readonly isEverywhere: boolean };

type WriteKind = 'done' | 'unknown' | 'refused' | 'not_sent';

export type Fault =
  | { readonly is: 'stopped'; readonly forMs: number; readonly isHeardFirst: boolean }
  | { readonly is: 'cut'; readonly kind: 'questions' | 'messages' | undefined }
  | {
      readonly is: 'still';
      readonly kind: 'questions' | 'messages';
      readonly direction: 'there' | 'back';
      readonly forMs: number;
    }
  | { readonly is: 'lost'; readonly messages: number }
  | { readonly is: 'deaf'; readonly forMs: number };

interface At {
  readonly at: number;
  readonly instance: number;
}

/** What happens in a schedule, and when, in milliseconds from its beginning. */
export interface Plan {
  readonly seed: number;
  /** How fast the clock of each instance runs. */
  readonly rates: readonly number[];
  readonly acts: readonly (At & { readonly act: Act })[];
  readonly faults: readonly (At & { readonly fault: Fault })[];
}

/** Clocks of instances may run 8 % fast or slow. */
const DRIFT = 0.08;

interface PlanSize {
  readonly lengthMs: number;
  readonly mostFaults: number;
  readonly instances: number;
  /** Between two acts of an instance on average. With fewer reads it would hold no view. */
  readonly gapMs: number;
}

/** Of a schedule. In the first second an instance that is busy finds that it is. */
const SHORT_MS = 700;
export const LONG_MS = 1_500;
const GAP_MS = 14;

export function planOf(
  seed: number,
  size: { readonly [Name in keyof PlanSize]?: PlanSize[Name] | undefined } = {},
): Plan {
  const random = randomOf(seed);
  const { lengthMs = SHORT_MS, mostFaults = 3, instances = random() < 0.5 ? 2 : 3, gapMs = GAP_MS } = size;
  const rates = Array.from({ length: instances }, () => 1 + (2 * random() - 1) * DRIFT);
  const instance = () => Math.floor(random() * instances);
  const acts: Plan['acts'][number][] = [];
  for (let at = 0; at < lengthMs; at += 2 * (gapMs / instances) * random())
    acts.push({ at, instance: instance(), act: actOf(random) });
  const faults = Array.from({ length: Math.floor(random() * (mostFaults + 1)) }, () => ({
    at: random() * lengthMs,
    instance: instance(),
    fault: faultOf(random),
  }));
  // What goes wrong shows where something changes meanwhile.
  for (const fault of faults) {
    if (random() < 0.3) continue;
    const [at, other] = [fault.at + random() * 60, (fault.instance + 1) % instances];
    acts.push({ at, instance: other, act: changeOf(random) });
    if (random() < 0.5) acts.push({ at: at + random() * 60, instance: other, act: { do: 'other' } as const });
  }
  return { seed, rates, acts, faults };
}

const changeOf = (random: Random): Act =>
  random() < 0.7
    ? { do: 'write', things: oneOf(random, SOME_THINGS), end: 'done', hasKey: true }
    : { do: 'sign-out', nth: random(), isEverywhere: false };

const SOME_THINGS = [['a'], ['a'], ['a'], ['b'], ['a', 'b']] as const;

function actOf(random: Random): Act {
  const kind = random();
  const things = oneOf(random, SOME_THINGS);
  if (kind < 0.02) {
    const end = oneOf(random, ['done', 'done', 'done', 'done', 'done', 'unknown', 'refused', 'not_sent'] as const);
    return { do: 'write', things: random() < 0.2 ? [] : things, end, hasKey: random() < 0.7 };
  }
  if (kind < 0.045) return { do: 'replay', nth: random() };
  if (kind < 0.065) return { do: 'other' };
  if (kind < 0.075) return { do: 'sign-out', nth: random(), isEverywhere: random() < 0.1 };
  if (kind < 0.11) return { do: 'count' };
  const session = random() < 0.2 ? random() : undefined;
  return { do: 'read', things, ...(session !== undefined && { session }), isCounted: random() < 0.1 };
}

function faultOf(random: Random): Fault {
  const kind = oneOf(random, ['questions', 'messages'] as const);
  const forMs = random() * 400;
  const which = random();
  if (which < 0.25) return { is: 'stopped', forMs: random() * 500, isHeardFirst: random() < 0.5 };
  if (which < 0.4) return { is: 'cut', kind: random() < 0.3 ? undefined : kind };
  if (which < 0.65) return { is: 'still', kind, direction: oneOf(random, ['there', 'back'] as const), forMs };
  if (which < 0.8) return { is: 'lost', messages: 1 + Math.floor(random() * 3) };
  return { is: 'deaf', forMs: random() * 300 };
}

/** What was done in schedules, and what was broken. */
export interface Counts {
  reads: number;
  /** Reads that asked nobody. */
  local: number;
  asked: number;
  fetched: number;
  writes: number;
  replays: number;
  signOuts: number;
  /** Requests of a session that was over. */
  keptOut: number;
  /** Requests over a limit. */
  overLimit: number;
}

export const noCounts = (): Counts => ({
  reads: 0,
  local: 0,
  asked: 0,
  fetched: 0,
  writes: 0,
  replays: 0,
  signOuts: 0,
  keptOut: 0,
  overLimit: 0,
});

export function addCounts(to: Counts, more: Counts): void {
  for (const name of Object.keys(more) as (keyof Counts)[]) to[name] += more[name];
}

const HOT = 'hot';
const OTHER = 'other';
const LIMITED = 'limited';

/** In one window for the whole of a schedule. */
const LONG: Window = { name: 'requests', lengthMs: 60_000, limit: 24 };
/** In some windows, one after the other. */
const SHORT: Window = { name: 'requests', lengthMs: 500, limit: 10 };
const COUNTED: ReadAsk = { account: LIMITED, things: [], window: SHORT };
/** Requests that come at once. */
const BURST = 3;
/** How much later than the store an instance may take a window for over, by its clock. */
const LATE_MS = 2 * DRIFT * SHORT.lengthMs;

interface LetIn {
  readonly at: number;
  readonly end: number | undefined;
}

interface Key {
  readonly name: string;
  readonly things: readonly string[];
}

const delay = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** What instances are seen to do, and whether that is right. */
export class Judge {
  readonly counts = noCounts();
  readonly violations: string[] = [];
  /** Who reads what has been written, or ended, as soon as that is told. */
  watchers: readonly Instance[] = [];
  /** Of these the store may lose the sign-outs that are told now, until they are reported again: a failover is near. */
  readonly losing = new Set<Instance>();
  readonly #random: Random;
  readonly #now = new Map<string, number>();
  readonly #told = new Map<string, number>();
  readonly #sessions: SessionId[] = Array.from({ length: 5 }, (_, i) => ({ id: `session${i}`, epoch: 0 }));
  /** Ids of sessions that are over, as a client was told. */
  readonly #over = new Set<string>();
  readonly #keys: Key[] = [];
  readonly #watching: Promise<unknown>[] = [];
  readonly #letIn: { readonly long: LetIn[]; readonly short: LetIn[] } = { long: [], short: [] };
  readonly #begun = performance.now();
  #epoch = 0;
  #nonces = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  readonly upstream: Upstream = {
    fetch: async (account, thing) => {
      await delay(this.#wayMs());
      const value = this.#now.get(`${account} ${thing}`) ?? 0;
      await delay(this.#wayMs() + this.#random() * 60);
      return value;
    },
    write: async (account, things) => {
      await delay(this.#wayMs() + this.#random() * 40);
      const names = things.map((thing) => [thing, `${account} ${thing}`] as const);
      for (const [, name] of names) this.#now.set(name, (this.#now.get(name) ?? 0) + 1);
      const values = Object.fromEntries(names.map(([thing, name]) => [thing, this.#now.get(name) ?? 0]));
      await delay(this.#wayMs());
      return values;
    },
  };

  /** How often that was written. */
  written(account: string, thing: string): number {
    return this.#now.get(`${account} ${thing}`) ?? 0;
  }

  async act(instance: Instance, act: Act): Promise<void> {
    if (act.do === 'read') await this.#read(instance, act);
    if (act.do === 'count') await Promise.all(Array.from({ length: BURST }, () => this.read(instance, COUNTED)));
    if (act.do === 'write') await this.#write(instance, act);
    if (act.do === 'replay') await this.#replay(instance, act.nth);
    if (act.do === 'other') await this.write(instance, { account: OTHER, things: ['a'], end: 'done' });
    if (act.do === 'sign-out') await this.#signOut(instance, act);
  }

  async read(instance: Instance, ask: ReadAsk): Promise<ReadDone> {
    const least = ask.things.map((thing) => this.#told.get(`${ask.account} ${thing}`) ?? 0);
    const isOver = ask.session !== undefined && this.#over.has(ask.session.id);
    const at = Date.now();
    const done = await instance.read(ask);
    const { values, how, session } = done;
    const { counts } = this;
    counts.reads++;
    if (how !== 'refused') counts[how]++;
    if (session === 'over') counts.keptOut++;
    if (done.isLetIn === false) counts.overLimit++;
    if (isOver && session === 'open') this.#complain(`${ask.session?.id} is let in after its end was told`);
    for (const [i, thing] of ask.things.entries()) {
      const value = values[thing] ?? Infinity;
      if (value < least[i]!) this.#complain(`${how}: ${ask.account} ${thing} is ${value}, but ${least[i]} was told`);
    }
    const letIn = { at, end: done.windowEnd };
    if (done.isLetIn && !done.isAlone) this.#letIn[ask.window === SHORT ? 'short' : 'long'].push(letIn);
    return done;
  }

  /** Resolves when it is told. */
  async write(
    instance: Instance,
    { account, things, end, key }: { account: string; things: readonly string[]; end: WriteKind; key?: string },
  ): Promise<boolean> {
    const nonce = `nonce${this.#nonces++}`;
    const { told, isReplay } = await instance.write({ account, things, nonce, key, end });
    if (told) this.#tell(account, told);
    if (told) this.counts[isReplay ? 'replays' : 'writes']++;
    if (told && account === HOT) this.#watch({ account, things: Object.keys(told) });
    return told !== undefined;
  }

  /** Resolves with whether it is told. */
  signOut(instance: Instance, session: SessionId): Promise<boolean> {
    return this.#revoke(instance, { id: session.id, epoch: 0 }, [session]);
  }

  /** Where the store loses what it has counted there is nothing to check. */
  checkLimits(): void {
    const { long, short } = this.#letIn;
    if (long.length > LONG.limit) this.#complain(`${long.length} of ${LONG.limit} are let in`);
    for (const [end, count] of windowsOf(short))
      if (count > SHORT.limit) this.#complain(`${count} of ${SHORT.limit} are let in, until ${end}`);
    for (const { at, end = Infinity } of short)
      if (at > end + LATE_MS) this.#complain(`one is let in ${at - end} ms after the window in which it was counted`);
  }

  async #read(instance: Instance, { things, session, isCounted }: Extract<Act, { do: 'read' }>): Promise<void> {
    const by = session === undefined ? undefined : this.#sessions[Math.floor(session * this.#sessions.length)];
    await this.read(instance, { account: HOT, things, session: by, window: isCounted ? LONG : undefined });
  }

  async #write(instance: Instance, { things, end, hasKey }: Extract<Act, { do: 'write' }>): Promise<void> {
    const key = hasKey ? { name: `key${this.#keys.length}`, things } : undefined;
    if (key) this.#keys.push(key);
    await this.write(instance, { account: HOT, things, end, ...(key && { key: key.name }) });
  }

  /** Of one of the last keys. */
  async #replay(instance: Instance, nth: number): Promise<void> {
    const key = this.#keys.at(-1 - Math.floor(nth * 3));
    if (key) await this.write(instance, { account: HOT, things: key.things, end: 'done', key: key.name });
  }

  async #signOut(instance: Instance, { nth, isEverywhere }: Extract<Act, { do: 'sign-out' }>): Promise<void> {
    const session = this.#sessions[Math.floor(nth * this.#sessions.length)];
    if (!session) return;
    if (!isEverywhere) return void (await this.signOut(instance, session));
    const epoch = ++this.#epoch;
    await this.#revoke(
      instance,
      { epoch },
      this.#sessions.filter((one) => one.epoch < epoch),
    );
    for (const i of [0, 1, 2]) this.#sessions.push({ id: `session${i} of ${epoch}`, epoch });
  }

  async #revoke(
    instance: Instance,
    revoked: { id?: string; epoch: number },
    over: readonly SessionId[],
  ): Promise<boolean> {
    const wasLosing = this.losing.has(instance);
    const isKnown = await instance.revoke({ account: HOT, revoked });
    if (!isKnown || wasLosing || this.losing.has(instance)) return false;
    this.counts.signOuts++;
    for (const { id } of over) this.#over.add(id);
    const session = over[0];
    if (session) this.#watch({ account: HOT, things: ['a'], session });
    return true;
  }

  #watch(ask: ReadAsk): void {
    for (const watcher of this.watchers)
      for (const ms of [0, this.#random() * 40]) this.#watching.push(delay(ms).then(() => this.read(watcher, ask)));
  }

  /** Resolves when nobody reads any more. */
  async watched(): Promise<void> {
    await Promise.all(this.#watching);
  }

  #tell(account: string, values: Values): void {
    for (const [thing, value] of Object.entries(values)) {
      const name = `${account} ${thing}`;
      this.#told.set(name, Math.max(this.#told.get(name) ?? 0, value));
    }
  }

  #complain(what: string): void {
    this.violations.push(`${(performance.now() - this.#begun).toFixed(0)} ms: ${what}`);
  }

  #wayMs(): number {
    return 0.3 + this.#random() * 6;
  }
}

/** How many were let in, by the end of the window in which the store has counted them. */
const windowsOf = (letIn: readonly LetIn[]): ReadonlyMap<number, number> =>
  new Map([...Map.groupBy(letIn, ({ end = Infinity }) => end)].map(([end, those]) => [end, those.length]));
