import type { Instance } from './instance.ts';
import { copyOf, type Data, noData, type RedisNode, uniqueName } from '../../support/redis-node.ts';
import { DOWN_AFTER_MS, LOAD_MS, MAX_LAG_MS, oneOf, type Random, type World } from './world.ts';

/** The store finds out by itself that all were elsewhere, by 2.5 s in which nobody said HELLO; what was late may still come. */
const NOTICED_MS = 6_000;

/** Copies what the primary has written, a little later and in order, until the link is cut. */
export class Replication {
  isUp = true;
  #arrivesFrom = 0;

  constructor(world: World, from: RedisNode, to: RedisNode) {
    from.onWrite = () => {
      if (!this.isUp) return;
      const data = copyOf(from.data);
      this.#arrivesFrom = Math.max(this.#arrivesFrom, world.time.now + world.random() * 30);
      world.time.at(this.#arrivesFrom, () => {
        if (this.isUp) to.data = data;
      });
    };
  }
}

export interface Fleet {
  readonly world: World;
  readonly instances: readonly Instance[];
  readonly primary: RedisNode;
  readonly replica: RedisNode;
  /** Another store, to which an address may lead. */
  readonly elsewhere: RedisNode;
  readonly replication: Replication;
  /** Many ask at once for a while: when something is lost, that is when it shows. */
  readonly busy: () => void;
}

/** Connections break, commands and replies are late, instances stand still or are killed. */
export function breakInstances({ world, instances }: Fleet): void {
  const { time, random, judge } = world;
  for (let i = 0; i < 6; i++) {
    const instance = oneOf(random, instances);
    const kind = random();
    const fault = () => {
      const { connection } = instance.shelf;
      const lateUntil = time.now + random() * 1_900;
      if (kind < 0.3) instance.standStill(random() * (random() < 0.7 ? 3_000 : 18_000));
      else if (kind < 0.5) instance.cut(random() < 0.5, 300);
      else if (kind < 0.65) buyAndCut(world, instance);
      else if (kind < 0.8) connection.commandsFrom = Math.max(connection.commandsFrom, lateUntil);
      else if (kind < 0.9) connection.repliesFrom = Math.max(connection.repliesFrom, lateUntil);
      else instance.kill();
      if (kind >= 0.65 && kind < 0.9) judge.say(`what ${instance.name} ${kind < 0.8 ? 'asks' : 'is told'} is late`);
    };
    time.after(random() * LOAD_MS * 0.94, fault);
  }
}

/**
 * What was asked on a connection that is closed arrives after what is asked on the next one: here the swap of a purchase,
 * after its look was answered.
 */
function buyAndCut({ time, random }: World, instance: Instance): void {
  instance.run(() => instance.write({ tags: ['*'], isPurchase: true, key: uniqueName('cut') }));
  time.after(random() * 40, () => {
    const { connection } = instance.shelf;
    connection.commandsFrom = Math.max(connection.commandsFrom, time.now + 500 + random() * 1_400);
    time.after(60, () => instance.cut(false, 300));
  });
}

/** What happens to the store, and how likely it is. */
const STORE_FAULTS: readonly (readonly [weight: number, fault: (fleet: Fleet) => void])[] = [
  [12, flush],
  [10, restartEmpty],
  [12, restore],
  [8, restartWithAll],
  [16, leadElsewhere],
  [20, cutOff],
  [14, standStill],
  [4, loseToken],
  [16, () => undefined],
];

export function breakStore(fleet: Fleet): void {
  const { time, random } = fleet.world;
  const fault = pick(random);
  const inMs = 6_000 + random() * 25_000;
  if (random() < 0.6) time.after(inMs - 1_200, fleet.busy);
  time.after(inMs, () => fault?.(fleet));
}

function pick(random: Random) {
  let left = random() * STORE_FAULTS.reduce((sum, [weight]) => sum + weight, 0);
  return STORE_FAULTS.find(([weight]) => (left -= weight) < 0)?.[1];
}

function lose({ world, busy }: Fleet, why: string): void {
  if (world.random() < 0.6) busy();
  world.judge.lost(why);
}

function flush(fleet: Fleet): void {
  const { world, primary, instances } = fleet;
  lose(fleet, 'it was flushed');
  primary.data = noData();
  primary.onWrite();
  if (world.random() < 0.4) instances[0]?.kill();
}

function restart({ world, instances, primary }: Fleet, data: Data): void {
  primary.run = uniqueName('run');
  primary.data = data;
  for (const instance of instances) {
    if (instance.shelf.connection.node === primary) instance.cut(true, 50);
  }
  world.judge.say('it was restarted');
}

/** Somebody has removed that key alone. */
function loseToken({ world, primary }: Fleet): void {
  world.judge.say('the token is gone');
  primary.data.token = undefined;
  primary.onWrite();
}

function restartEmpty(fleet: Fleet): void {
  lose(fleet, 'it was restarted empty');
  restart(fleet, noData());
}

function restartWithAll(fleet: Fleet): void {
  restart(fleet, copyOf(fleet.primary.data));
}

function restore(fleet: Fleet): void {
  const { world, primary } = fleet;
  const saved = copyOf(primary.data);
  const ageMs = world.random() * 6_000;
  world.time.after(ageMs, () => {
    lose(fleet, `it was restored from ${ageMs.toFixed(0)} before`);
    restart(fleet, saved);
  });
}

/** Instances follow one after the other. `onAll` is called when all use it, or are led on; returns when the last one begins to. */
function leadAll(
  fleet: Fleet,
  node: RedisNode,
  { isKilling, onAll }: { isKilling: boolean; onAll: () => void },
): number {
  const { world, instances } = fleet;
  const { time, random, judge } = world;
  const split = judge.split();
  let last = 0;
  for (const instance of instances) {
    const inMs = isKilling ? 0 : random() * 600; // a new process does not know that another one is elsewhere still
    last = Math.max(last, inMs);
    time.after(inMs, () => {
      instance.lead(node);
      if (isKilling) instance.kill();
    });
  }
  const isThere = ({ address, shelf }: Instance) =>
    address.node !== node || (shelf.isThere && shelf.connection.node === node);
  const wait = () => {
    if (!instances.every(isThere)) return time.after(100, wait);
    split.end();
    onAll();
  };
  time.after(last, wait);
  return last;
}

function leadElsewhere(fleet: Fleet): void {
  const { world, primary, elsewhere } = fleet;
  const { time, random } = world;
  const awayMs = 500 + random() * 15_000;
  if (random() < 0.5) elsewhere.data = copyOf(primary.data);
  lose(fleet, 'the address leads elsewhere');
  const last = leadAll(fleet, elsewhere, { isKilling: false, onAll: () => lose(fleet, 'all are elsewhere') });
  time.after(Math.max(awayMs, last + 700), () => {
    lose(fleet, 'the address leads back');
    // After less than that the store itself may not notice that all were elsewhere, and of processes that are new nobody knows.
    const isKilling = awayMs > NOTICED_MS && random() < 0.4;
    leadAll(fleet, primary, { isKilling, onAll: () => lose(fleet, 'all are back') });
  });
}

/** The replica takes its place. Instances on the side of the old primary find out later. */
function promote(fleet: Fleet, { there, findOutInMs }: { there: readonly Instance[]; findOutInMs: number }): void {
  const { world, instances, primary, replica } = fleet;
  const { time, random } = world;
  replica.isPrimary = true;
  lose(fleet, 'the replica was promoted');
  for (const instance of instances) {
    if (!there.includes(instance)) time.after(random() * 1_000, () => instance.lead(replica));
  }
  time.after(findOutInMs, () => {
    primary.isPrimary = false;
    for (const instance of there) time.after(random() * 1_000, () => instance.lead(replica));
  });
}

/** The primary, and some instances with it, cannot be reached from its replica, which is promoted. */
function cutOff(fleet: Fleet): void {
  const { world, instances, primary, replication } = fleet;
  const { time, random } = world;
  world.judge.say('the primary is cut off');
  replication.isUp = false;
  const there = instances.filter(() => random() < 0.5);
  time.after(MAX_LAG_MS + random() * 1_000, () => {
    primary.lacksReplicas = true;
  });
  time.after(DOWN_AFTER_MS + 200 + random() * 1_500, () => {
    promote(fleet, { there, findOutInMs: 4_000 + random() * 15_000 });
  });
}

/** The primary stands still, is replaced, and goes on as if nothing had been. */
function standStill(fleet: Fleet): void {
  const { world, instances, primary, replication } = fleet;
  const { time, random } = world;
  const stopMs = DOWN_AFTER_MS + 1_000 + random() * 7_000;
  world.judge.say(`the primary stands still for ${stopMs.toFixed(0)}`);
  replication.isUp = false;
  primary.stoppedUntil = time.now + stopMs;
  primary.lacksReplicas = true;
  const there = instances.filter(() => random() < 0.5);
  time.after(DOWN_AFTER_MS + 200 + random() * 1_500, () => {
    promote(fleet, { there, findOutInMs: 9_000 + random() * 12_000 });
  });
}
