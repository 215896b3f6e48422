import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, inject, onTestFinished, TestRunner } from 'vitest';
import { testClock, type TestClock } from './clock.ts';
import { FakeShelf } from './fake-shelf.ts';
import { askBy, type Env, type Gateway, type GatewayOptions, openGateway } from './gateway.ts';
import { type KnownRedis, shelfOf, storeOver } from './stores.ts';
import { Upstream } from './upstream.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** That of the whole run; where none is installed there is none. */
    readonly redis: KnownRedis | undefined;
  }
}

/** Instances with one store before one upstream, in this process. */
export interface Fleet<One extends Gateway = Gateway> {
  readonly upstream: Upstream;
  readonly clock: TestClock;
  readonly instances: readonly One[];
}

interface FleetOptions extends Pick<GatewayOptions, 'table' | 'overviews' | 'hooks'> {
  readonly size?: number;
  /** The store's time is that of the clock, also for what expires in it: a double of the store, not the run's Redis. */
  readonly time?: boolean;
}

/** By which the instances know the accounts of one another. */
const SECRETS = 'for-development-only-and-known-to-all';

const secretsIn = ({ SECRETS: secrets = '' }: Env) => secrets.split(',');

/** Over the run's Redis, or a double of it. */
export async function openFleet(given: Env = {}, { time, ...options }: FleetOptions = {}): Promise<Fleet> {
  const redis = inject('redis');
  if (!redis || time) return openDoubles(given, options);
  const { size = 2, ...others } = options;
  const env = { SECRETS, ...given };
  const upstream = new Upstream();
  const clock = testClock();
  const shelves = await Promise.all(Array.from({ length: size }, () => shelfOf(redis, clock)));
  const close = () => shelves.forEach((shelf) => shelf.close());
  if (TestRunner.getCurrentTest()) onTestFinished(close);
  else afterAll(close);
  const instances = shelves.map((shelf) => {
    const store = storeOver(shelf, clock, secretsIn(env));
    return settling(openGateway(env, { ...others, upstream, clock, store }), () => shelf.settled());
  });
  return { upstream, clock, instances };
}

/** What is told to the store behind an answer is known there when the test has the answer. */
function settling<One extends Gateway>(gateway: One, settled: () => Promise<unknown>): One {
  const call: Gateway['call'] = async (...asked) => {
    const answer = await gateway.call(...asked);
    await settled();
    return answer;
  };
  return { ...gateway, call, ask: askBy(call) };
}

/** An instance whose calls of the store a test holds up. */
export interface Member extends Gateway {
  readonly shelf: FakeShelf;
  /** Its clocks say so much more than those of the others. */
  setClock(ms: number): void;
  /** None of its timers runs until `goOn`, as in a process that is stopped. */
  standStill(): void;
  goOn(): void;
}

interface Doubles extends Fleet<Member> {
  readonly a: Member;
  readonly b: Member;
  /** One more instance; variables over those of the fleet. */
  readonly start: (env?: Env) => Member;
}

/** Over a double of the store. */
export function openDoubles(given: Env = {}, { size = 2, ...others }: Omit<FleetOptions, 'time'> = {}): Doubles {
  const upstream = new Upstream();
  const clock = testClock();
  const store = new FakeShelf(clock);
  const start = (env: Env = {}): Member => {
    const all = { SECRETS, ...given, ...env };
    const shelf = store.beside();
    const { its, ...hands } = clockOfMember(clock);
    const gateway = openGateway(all, { ...others, upstream, clock: its, store: storeOver(shelf, its, secretsIn(all)) });
    return { ...settling(gateway, turn), shelf, ...hands };
  };
  const instances = Array.from({ length: size }, () => start());
  return { upstream, clock, start, instances, a: instances[0]!, b: instances[1]! };
}

function clockOfMember(clock: TestClock) {
  let aheadMs = 0;
  let due: (() => void)[] | undefined;
  const its: TestClock = {
    ...clock,
    now: () => clock.now() + aheadMs,
    wall: () => clock.wall() + aheadMs,
    after(ms, run) {
      let isCancelled = false;
      const now = () => void (isCancelled || run());
      const cancel = clock.after(ms, () => (due ? void due.push(now) : now()));
      return () => {
        isCancelled = true;
        cancel();
      };
    },
  };
  return {
    its,
    setClock: (ms: number) => void (aheadMs = ms),
    standStill: () => void (due = []),
    goOn() {
      const late = due ?? [];
      due = undefined;
      for (const run of late) run();
    },
  };
}
