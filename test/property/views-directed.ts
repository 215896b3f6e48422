import { setTimeout as sleep } from 'node:timers/promises';
import { HOT, Judge, OTHER } from './views.ts';
import type { Modules } from './views-instance.ts';
import { type Databases, Pair } from './views-redis.ts';
import { closeMember, type Member, openMember, type Played } from './views-run.ts';

/** The rules of the section that schedules show, each by what goes wrong without it. */
export type Rule =
  | 'wait'
  | 'sign-out'
  | 'replay'
  | 'sent'
  | 'heard'
  | 'gap'
  | 'base'
  | 'passed'
  | 'refused'
  | 'token'
  | 'silence';

/** Longer than any request of these takes. */
const WINDOW_MS = 500;
/** Between two reads of an instance that holds a view. */
const READ_MS = 8;
/** After a write was told, what is old may be seen for so long. */
const AFTER_MS = 40;
/** At most, for what a busy machine is slow with. */
const PATIENCE_MS = 3_000;
/** Questions by which a lease goes on. */
const BEATS = 3;
const READ = { account: HOT, things: ['a'] };
const BY_SESSION = { ...READ, session: { id: 'session', epoch: 0 } };
const WRITE = { account: HOT, things: ['a'], end: 'done' } as const;

const until = async (isSo: () => boolean): Promise<void> => {
  for (const end = performance.now() + PATIENCE_MS; !isSo() && performance.now() < end;) await sleep(1);
};

/** Two instances. Who looks has a view of the account that the other one writes. */
interface Stage {
  readonly looker: Member;
  readonly writer: Member;
  readonly judge: Judge;
}

/** Reads until nobody is asked, and then some more until there were beats. */
async function warm({ looker, judge }: Stage, ask = READ): Promise<void> {
  let asked = looker.relay.asked;
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end && looker.relay.asked < asked + BEATS;) {
    const { how } = await judge.read(looker.instance, ask);
    if (how !== 'local') asked = looker.relay.asked;
    await sleep(READ_MS);
  }
}

/** Reads on and on until that is over, and a little longer. */
async function lookWhile({ looker, judge }: Stage, going: Promise<unknown>, asks = [READ]): Promise<void> {
  let end = Infinity;
  void going.then(() => (end = performance.now() + AFTER_MS));
  const reads: Promise<unknown>[] = [];
  while (performance.now() < end) {
    for (const ask of asks) reads.push(judge.read(looker.instance, ask));
    await sleep(READ_MS);
  }
  await Promise.all([going, ...reads]);
}

/** A question of the looker, which the store has answered; the reply is on its way until what comes back is called. */
async function heldQuestion({ looker, judge }: Stage, ask: Parameters<Judge['read']>[1]) {
  const release = looker.relay.hold('questions', 'back');
  const before = looker.relay.kept('questions', 'back');
  const asked = judge.read(looker.instance, ask);
  await until(() => looker.relay.kept('questions', 'back') > before);
  return async () => {
    release();
    await asked;
  };
}

/** One connection after the other goes to another Redis, as those of a proxy that says nothing of it. */
async function lead({ relay }: Member, port: number): Promise<void> {
  relay.behind.questions = relay.behind.messages = port;
  relay.cut();
  await sleep(0);
}

type OnOne = (stage: Stage) => Promise<void>;

/** Over one Redis. */
const ON_ONE: Readonly<Record<Exclude<Rule, 'refused' | 'token' | 'silence'>, OnOne>> = {
  /** It is told at once, and the announcement is late. */
  async wait(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    looker.relay.hold('messages', 'back');
    await judge.write(writer.instance, WRITE);
    await judge.read(looker.instance, READ);
  },
  /** A sign-out is told at once. */
  async 'sign-out'(stage) {
    const { looker, writer, judge } = stage;
    await judge.read(looker.instance, BY_SESSION);
    await warm(stage, BY_SESSION);
    looker.relay.hold('messages', 'back');
    await judge.signOut(writer.instance, BY_SESSION.session);
    await judge.read(looker.instance, BY_SESSION);
  },
  /** Another request with its key tells of it at once. */
  async replay(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    looker.relay.hold('messages', 'back');
    const written = judge.write(writer.instance, { ...WRITE, key: 'key' });
    const isTold = () => Promise.race([written, sleep(0, false)]);
    await until(() => judge.written(HOT, 'a') > 0);
    while (judge.counts.replays === 0 && !(await isTold()))
      await judge.write(writer.instance, { ...WRITE, key: 'key' });
    await judge.read(looker.instance, READ);
    await written;
  },
  /** A reply from before the announcement is so late that it comes when the write is told. */
  async sent(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    const release = await heldQuestion(stage, { account: OTHER, things: ['b'] });
    looker.relay.hold('messages', 'back');
    await judge.write(writer.instance, WRITE);
    void release();
    await until(() => looker.relay.kept('questions', 'back') === 0);
    await sleep(2);
    await judge.read(looker.instance, READ);
  },
  /** Replies come, and messages do not. */
  async heard(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    looker.relay.hold('messages', 'back');
    await lookWhile(stage, judge.write(writer.instance, WRITE));
  },
  /** The announcement is lost, and the next message comes. */
  async gap(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    looker.relay.losing = 1;
    const written = judge.write(writer.instance, WRITE);
    await until(() => looker.relay.losing === 0);
    const other = judge.write(writer.instance, { ...WRITE, account: OTHER });
    await lookWhile(stage, written);
    await other;
  },
  /** The same, while a reply from before it is on its way. */
  async base(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    const release = await heldQuestion(stage, { ...READ, session: { id: 'another', epoch: 0 } });
    const before = looker.relay.heard;
    looker.relay.losing = 1;
    const written = judge.write(writer.instance, WRITE);
    await until(() => looker.relay.losing === 0);
    const other = judge.write(writer.instance, { ...WRITE, account: OTHER });
    await until(() => looker.relay.heard > before);
    await sleep(2);
    await release();
    await lookWhile(stage, written);
    await other;
  },
  /** The announcement comes before a reply that is from before it. */
  async passed(stage) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    const release = await heldQuestion(stage, { ...READ, session: { id: 'another', epoch: 0 } });
    const before = looker.relay.heard;
    const written = judge.write(writer.instance, WRITE);
    await until(() => looker.relay.heard > before);
    await sleep(2);
    await release();
    await lookWhile(stage, written);
  },
};

type OnPair = (stage: Stage, pair: Pair) => Promise<void>;

/** Over a primary and its replica, which takes its place. */
const ON_PAIR: Readonly<Record<Exclude<Rule, keyof typeof ON_ONE>, OnPair>> = {
  /** The looker stays at the primary that is cut off. */
  async refused(stage, pair) {
    const { writer, judge } = stage;
    await warm(stage);
    await pair.replicated();
    pair.cutOff();
    await pair.untilRefused();
    await warm(stage);
    await pair.promote();
    await lead(writer, pair.replica.port);
    await lookWhile(stage, untilTold(judge, writer));
  },
  /** The replica has heard of fewer changes than the looker. Its questions go there, as through a proxy that says nothing of it. */
  async token(stage, pair) {
    const { looker, writer, judge } = stage;
    await warm(stage);
    await pair.replicated();
    pair.cutOff();
    for (let i = 0; i < 5; i++) await judge.write(writer.instance, { ...WRITE, account: OTHER });
    await warm(stage);
    await pair.promote();
    await lead(writer, pair.replica.port);
    looker.relay.behind.questions = pair.replica.port;
    const release = looker.relay.hold('questions', 'there');
    await until(() => looker.relay.kept('questions', 'back') === 0);
    looker.relay.deafen('questions')();
    release();
    await lookWhile(stage, untilTold(judge, writer));
  },
  /** The primary stands still with the looker at it, and goes on when the replica has taken its place. */
  async silence(stage, pair) {
    const { writer, judge } = stage;
    await warm(stage);
    await pair.replicated();
    pair.cutOff();
    pair.primary.signal('SIGSTOP');
    const written = async () => {
      await sleep(DOWN_AFTER_MS);
      await pair.promote();
      await lead(writer, pair.replica.port);
      await untilTold(judge, writer);
      await judge.signOut(writer.instance, BY_SESSION.session);
    };
    const goesOn = async () => {
      await Promise.all([written(), sleep(STILL_MS)]);
      pair.primary.signal('SIGCONT');
      await sleep(GOES_ON_MS);
    };
    await lookWhile(stage, goesOn(), [READ, BY_SESSION]);
  },
};

/** What sentinels wait before they promote a replica (deploy/store). */
const DOWN_AFTER_MS = 3_000;
/** Longer than any instance believes in a store that says nothing. */
const STILL_MS = 6_200;
/** How long a primary goes on without its replica until it notices. */
const GOES_ON_MS = 1_500;

/** How soon an instance finds the new primary, on a busy machine. */
const FOUND_MS = 20_000;

/** A write through an instance that has yet to find the store. */
async function untilTold(judge: Judge, { instance }: Member): Promise<void> {
  for (const end = performance.now() + FOUND_MS; performance.now() < end && !(await judge.write(instance, WRITE));)
    await sleep(READ_MS);
}

interface Directed {
  readonly databases: Databases;
  readonly modules?: Modules | undefined;
  /** Of the primary. */
  readonly leastReplicas?: number;
}

const isOnOne = (rule: Rule): rule is keyof typeof ON_ONE => rule in ON_ONE;

/** Plays the schedule that fails where this rule is left out. */
export async function playDirected(rule: Rule, { databases, modules, leastReplicas }: Directed): Promise<Played> {
  const judge = new Judge(() => 0);
  const open = (port: number, db: number) =>
    openMember({ port, db, modules, upstream: judge.upstream, windowMs: WINDOW_MS });
  const play = async (port: number, db: number, run: (stage: Stage) => Promise<void>) => {
    const [looker, writer] = [await open(port, db), await open(port, db)];
    await run({ looker, writer, judge });
    await Promise.all([looker, writer].map(closeMember));
  };
  if (isOnOne(rule)) {
    const db = databases.take();
    await play(databases.port, db, ON_ONE[rule]);
    await databases.giveBack(db);
  } else {
    const pair = await Pair.open(WINDOW_MS, leastReplicas);
    await play(pair.primary.port, 0, (stage) => ON_PAIR[rule](stage, pair));
    await pair.close();
  }
  return judge;
}

export const RULES = [...Object.keys(ON_ONE), ...Object.keys(ON_PAIR)] as readonly Rule[];
