import { breakInstances, breakStore, type Fleet, Replication } from './faults.ts';
import { Instance } from './instance.ts';
import { Judge } from './judge.ts';
import { RedisNode, uniqueName } from '../../support/redis-node.ts';
import { VirtualTime } from './time.ts';
import { END_MS, LATE_MS, LOAD_MS, oneOf, randomOf, REQUEST_MS, usualDelay, type World } from './world.ts';

/** A day on which seconds are whole. */
const START_MS = Date.UTC(2026, 5, 9, 12);
/** Of the last faults the store is over by then, and marks too. */
const QUIET_MS = LOAD_MS + 9_000 + REQUEST_MS + LATE_MS;

const SESSIONS = [0, 1, 2].map((n) => ({ id: `session${n}`, epoch: START_MS / 1000 }));

/** Plays one schedule: three instances, two keys of the cache, a primary with its replica, and what goes wrong. */
export async function play(seed: number): Promise<Judge> {
  const random = randomOf(seed);
  const time = new VirtualTime(START_MS);
  const judge = new Judge(time);
  const copyMs = random() < 0.5 ? 12_000 : 30_000;
  const world: World = {
    time,
    random,
    judge,
    delay: usualDelay(random),
    refusing: oneOf(random, [0, 0, 0.02, 0.1]),
    faultsUntil: START_MS + LOAD_MS,
    copyMs,
  };
  const [primary, replica, elsewhere] = [true, false, true].map((is) => new RedisNode(is, { now: () => time.now }));
  if (!primary || !replica || !elsewhere) throw new Error('there are three');
  const replication = new Replication(world, primary, replica);
  const instances = ['one', 'two', 'three'].map((name) => new Instance(name, world, primary));
  const clients = new Clients(world, instances);
  const fleet: Fleet = {
    world,
    instances,
    primary,
    replica,
    elsewhere,
    replication,
    busy: () => clients.ask({ forMs: 2_500, everyMs: 60 }),
  };
  clients.begin();
  breakInstances(fleet);
  breakStore(fleet);
  time.after(QUIET_MS, () => clients.checkAll());
  await time.play(START_MS + END_MS);
  clients.findStopped();
  if (judge.losses.length === 0) findStuck(judge, instances, primary);
  return judge;
}

/** Nobody has lost anything: the key of what was not sent is free. */
function findStuck(judge: Judge, instances: readonly Instance[], { data }: RedisNode): void {
  const held = [...data.values].filter(([name]) => name.startsWith('r:'));
  const texts = held.map(([, { bytes }]) => new TextDecoder().decode(bytes));
  for (const instance of instances) {
    for (const [nonce, { process }] of instance.notSent) {
      const isTaken = texts.some((text) => text.includes(`"${nonce}"`));
      if (process.isAlive && isTaken) judge.violation('stuck', `the key of ${nonce}, which was not sent, is taken`);
    }
  }
}

/** What they ask for, of any instance. */
class Clients {
  readonly #world: World;
  readonly #instances: readonly Instance[];
  /** How many of the writes are made: where there are few, what the last one left behind stands for longer. */
  readonly #writing: number;
  /** What an instance has still to show that it can do. */
  readonly #unchecked = new Set<string>();

  constructor(world: World, instances: readonly Instance[]) {
    this.#world = world;
    this.#instances = instances;
    this.#writing = oneOf(world.random, [1, 1, 1, 0.15, 0.03]);
  }

  /** In half of the schedules nobody asks for anything for a while. */
  begin(): void {
    const { time, random } = this.#world;
    const quietFrom = random() < 0.5 ? 10_000 + random() * 25_000 : Infinity;
    const quietTo = quietFrom + 12_000 + random() * 12_000;
    for (let ms = 200; ms < LOAD_MS; ms += random() * 250) {
      if (ms < quietFrom || ms > quietTo) time.after(ms, () => this.#ask(random()));
    }
  }

  ask({ forMs, everyMs }: { forMs: number; everyMs: number }): void {
    const { time, random } = this.#world;
    for (let ms = 0; ms < forMs; ms += random() * everyMs) {
      time.after(ms, () => this.#ask(random() < 0.3 ? random() * 0.12 : 0.12 + random()));
    }
  }

  /** All faults are over: each instance reads by its store, and writes, also with a new key, if asked until it does. */
  checkAll(): void {
    for (const instance of this.#instances) {
      this.#check('read', instance, async () => (await instance.read('b')) !== 'hidden');
      this.#check('write', instance, () => this.#canWrite(instance, undefined));
      this.#check('write with a key', instance, () => this.#canWrite(instance, uniqueName('last')));
    }
  }

  findStopped(): void {
    for (const what of this.#unchecked) this.#world.judge.violation('stopped', what);
  }

  async #canWrite(instance: Instance, key: string | undefined): Promise<boolean> {
    return (await instance.write({ tags: ['a'], key })) !== 'unavailable';
  }

  #check(does: string, instance: Instance, attempt: () => Promise<boolean>): void {
    const what = `${instance.name} does not ${does}`;
    this.#unchecked.add(what);
    instance.run(async () => {
      while (!(await attempt())) await instance.process.pause(500); // commands are still late now and then
      this.#unchecked.delete(what);
    });
  }

  #ask(chance: number): void {
    const { random, judge, time } = this.#world;
    const what = chance < 0.1 && random() >= this.#writing ? 0.5 : chance;
    const instance = this.#anyInstance();
    if (what < 0.07) instance.run(() => instance.write({ tags: [oneOf(random, ['a', 'b', 'a'])] }));
    else if (what < 0.09) this.#buy(uniqueName('key'), 4);
    else if (what < 0.1) instance.run(() => instance.write({ tags: ['*'], isPurchase: true }));
    else if (what < 0.12) {
      const keys = judge.sent.filter(({ key, sentAt = 0 }) => key !== undefined && sentAt > time.now - 8_000);
      const key = keys.length > 0 ? oneOf(random, keys).key : undefined;
      if (key !== undefined) instance.run(() => instance.question(key));
    } else if (what < 0.13) instance.run(() => instance.signOut(oneOf(random, SESSIONS)));
    else
      instance.run(() =>
        instance.read(random() < 0.7 ? 'a' : 'b', random() < 0.3 ? oneOf(random, SESSIONS) : undefined),
      );
  }

  /** Buys with a key, and asks again: after an answer, after none, and elsewhere without waiting for either. */
  #buy(key: string, tries: number): void {
    const { time, random } = this.#world;
    if (tries === 0) return;
    const instance = this.#anyInstance();
    instance.run(async () => {
      const heard = await instance.write({ tags: ['*'], isPurchase: true, key });
      if (heard === 'replayed' && random() < 0.5) return;
      const isEarly = heard === 'unavailable' || heard === 'refused' || heard === 'under_way';
      time.after(random() * (isEarly ? 1_500 : 4_000), () => this.#buy(key, tries - 1));
    });
    if (random() < 0.5) time.after(random() * 3_000, () => this.#buy(key, tries - 1));
  }

  #anyInstance(): Instance {
    return oneOf(this.#world.random, this.#instances);
  }
}
