import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreAddress } from '../../src/entry/node/redis/address.ts';
import { type Random, randomOf } from './random.ts';
import { addCounts, type Counts, type Fault, Judge, noCounts, type Plan, planOf, LONG_MS } from './views.ts';
import { type Instance, LocalInstance, type Upstream } from './views-instance.ts';
import { Databases } from './views-redis.ts';
import { ViewsRelay } from './views-relay.ts';

/** How long a store that was replaced is not relied on. */
export const WINDOW_MS = 900;
/** Most is late by a few milliseconds, and now and then something by up to so much, with all that is behind it. */
const LATE_MS = 400;
const BETWEEN_LATE_MS = 600;

export function usualDelay(random: Random): () => number {
  let nextLate = performance.now() + 2 * BETWEEN_LATE_MS * random();
  return () => {
    const now = performance.now();
    if (now < nextLate) return 0.3 + random() * 6;
    nextLate = now + 2 * BETWEEN_LATE_MS * random();
    return random() * LATE_MS;
  };
}

/** An instance in this process, with a relay of its own, that can be stopped. */
export interface Member {
  readonly instance: Instance;
  readonly relay: ViewsRelay;
  /** It stands still, and so does all that comes to it or goes from it, until what comes back is called. */
  readonly stop: () => (isHeardFirst?: boolean) => void;
}

export interface MemberOptions {
  readonly port: number;
  readonly db?: number;
  readonly upstream: Upstream;
  readonly windowMs?: number;
  readonly settlingMs?: number;
  readonly delay?: () => number;
  readonly rate?: number;
  readonly waits?: () => boolean;
}

export const addressOf = (port: number, db = 0): StoreAddress => ({
  kind: 'one',
  tls: false,
  nodes: [{ host: '127.0.0.1', port }],
  db,
});

/** Where actions wait while their instance is stopped. */
class Gate {
  #stopped = 0;
  #going = Promise.withResolvers<void>();

  stop(): void {
    if (this.#stopped++ === 0) this.#going = Promise.withResolvers();
  }

  go(): void {
    if (--this.#stopped === 0) this.#going.resolve();
  }

  async going(): Promise<void> {
    while (this.#stopped > 0) await this.#going.promise;
  }
}

export async function openMember(options: MemberOptions): Promise<Member> {
  const { port, db, upstream, windowMs = WINDOW_MS, settlingMs = 0, delay } = options;
  const { rate = 1, waits = () => true } = options;
  const relay = await ViewsRelay.open(port, delay);
  const gate = new Gate();
  const address = addressOf(relay.port, db);
  const its = { address, upstream, windowMs, settlingMs, rate, going: () => gate.going(), waits };
  const instance = await LocalInstance.open(its);
  return {
    instance,
    relay,
    stop() {
      const release = relay.hold();
      gate.stop();
      return (isHeardFirst = false) => {
        if (isHeardFirst) release();
        gate.go();
        release();
      };
    },
  };
}

export async function closeMember({ instance, relay }: Member): Promise<void> {
  await instance.close();
  await relay.close();
}

async function befall({ relay, stop }: Member, fault: Fault): Promise<void> {
  if (fault.is === 'cut') return relay.cut(fault.kind);
  if (fault.is === 'lost') return void (relay.losing = fault.messages);
  if (fault.is === 'stopped') {
    const go = stop();
    await sleep(fault.forMs);
    return go(fault.isHeardFirst);
  }
  const end = fault.is === 'deaf' ? relay.deafen() : relay.hold(fault.kind, fault.direction);
  await sleep(fault.forMs);
  end();
}

export interface Played {
  readonly counts: Counts;
  readonly violations: readonly string[];
}

/** How long what is under way at the end of a schedule may take. */
const END_MS = 10_000;

/** All that a plan says, at its times. */
export async function act(plan: Plan, members: readonly Member[], judge: Judge): Promise<void> {
  const all = [
    ...plan.faults.map(({ at, instance, fault }) => ({ at, begin: () => befall(members[instance]!, fault) })),
    ...plan.acts.map(({ at, instance, act: one }) => ({
      at,
      begin: () => judge.act(members[instance]!.instance, one),
    })),
  ].toSorted((one, other) => one.at - other.at);
  judge.watchers = members.map(({ instance }) => instance);
  const begun = performance.now();
  const running: Promise<void>[] = [];
  for (const { at, begin } of all) {
    const left = begun + at - performance.now();
    if (left > 0) await sleep(left);
    running.push(begin());
  }
  const ended = Promise.all(running)
    .then(() => judge.watched())
    .then(() => true);
  if (!(await Promise.race([ended, sleep(END_MS, false, { ref: false })]))) judge.violations.push('it does not end');
}

interface PlayOptions {
  readonly open?: (options: MemberOptions) => Promise<Member>;
}

/** Plays a schedule in a database of its own. */
async function play(plan: Plan, databases: Databases, { open = openMember }: PlayOptions): Promise<Played> {
  const random = randomOf(~plan.seed);
  const judge = new Judge(random);
  const db = databases.take();
  const { port } = databases;
  const members = await Promise.all(
    plan.rates.map((rate) =>
      open({
        port,
        db,
        rate,
        upstream: judge.upstream,
        delay: usualDelay(random),
        waits: () => random() < 0.7,
      }),
    ),
  );
  await act(plan, members, judge);
  judge.checkLimits();
  await Promise.all(members.map(closeMember));
  await databases.giveBack(db);
  return judge;
}

interface Failed {
  readonly seed: number;
  readonly violations: readonly string[];
}

export interface Ran {
  readonly schedules: number;
  readonly counts: Counts;
  readonly failed: readonly Failed[];
}

export interface RunOptions {
  readonly first: number;
  readonly count: number;
  readonly atOnce: number;
  readonly play: (seed: number) => Promise<Played>;
}

/** Where all is late nobody holds a view. */
const BUSY = 0.75;
const LOOK_MS = 100;

async function isBusy(): Promise<boolean> {
  const before = performance.eventLoopUtilization();
  await sleep(LOOK_MS);
  return performance.eventLoopUtilization(before).utilization > BUSY;
}

/** Schedules of that many seeds, at most so many at once. */
export async function run({ first, count, atOnce, play: playOf }: RunOptions): Promise<Ran> {
  const counts = noCounts();
  const failed: Failed[] = [];
  let schedules = 0;
  const running = new Set<number>();
  let next = first;
  const worker = async () => {
    for (;;) {
      while ((await isBusy()) && running.size > 0) continue;
      const seed = next++;
      if (seed >= first + count) return;
      running.add(seed);
      const played = await playOf(seed);
      running.delete(seed);
      schedules++;
      addCounts(counts, played.counts);
      if (played.violations.length > 0) failed.push({ seed, violations: played.violations });
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
  return { schedules, counts, failed };
}

export const playIn =
  (databases: Databases, { lengthMs, ...options }: PlayOptions & { readonly lengthMs?: number } = {}) =>
  (seed: number) =>
    play(planOf(seed, { lengthMs }), databases, options);

/** The same with each instance in a process of its own, which is stopped now and then. */
export const playInProcesses = (databases: Databases, open: NonNullable<PlayOptions['open']>) => (seed: number) => {
  const plan = planOf(seed, { lengthMs: LONG_MS, instances: 2, mostFaults: 8 });
  const faults = plan.faults.map(({ fault, ...at }, i) => ({ ...at, fault: i % 2 > 0 ? fault : stoppedFor(fault) }));
  return play({ ...plan, faults }, databases, { open });
};

const stoppedFor = (fault: Fault): Fault => ({
  is: 'stopped',
  forMs: 'forMs' in fault ? fault.forMs : 200,
  isHeardFirst: false,
});

/** One line. */
export function lineOf({ schedules, counts, failed }: Ran): string {
  const { reads, local, asked, fetched, writes, replays, signOuts, keptOut, overLimit } = counts;
  return [
    `${schedules} schedules: ${reads} reads (${local} asked nobody, ${asked} the store, ${fetched} the upstream)`,
    `${writes} writes and ${replays} replays told, ${signOuts} sign-outs`,
    `${keptOut} kept out, ${overLimit} over a limit; ${failed.length} schedules failed`,
  ].join('; ');
}
