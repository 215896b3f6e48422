import { Store } from '../../../src/store/store.ts';
import type { CacheKey, Entry, Found, NewWrite, SessionId, WriteEnd } from '../../../src/store/port.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';
import { type Seal, SealedNotes } from '../../../src/store/sealed.ts';
import type { Answer, ReadTag, Write } from './judge.ts';
import { type RedisNode, uniqueName } from '../../support/redis-node.ts';
import { SimulatedShelf } from './shelf.ts';
import { SimulatedProcess } from './time.ts';
import { LATE_MS, NOTE_OUTLIVES_COPY_MS, REQUEST_MS, type World } from './world.ts';

const ACCOUNT = 'account';
const KEEP_KEYS_MS = 24 * 60 * 60 * 1000;

/** Within which the store is told that a write was not sent. */
const TELL_MS = 5_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** What is stored can be read, and is named as it is. */
const plain: Seal = { seal: (_, text) => encoder.encode(text), open: (_, value) => decoder.decode(value) };

/** Sixteen characters or more; copies of different tags are in different places. */
const nameOf = (text: string) => `${text.startsWith('copy ') ? text.slice(5) : ''}${text}`.padEnd(16, '-');

/** What a client hears of its write: its own answer, that of an earlier one, or that it was not sent. */
export type Heard = 'done' | 'refused' | 'unknown' | 'unavailable' | 'under_way' | 'replayed';

export interface WriteAsk {
  readonly tags: readonly string[];
  readonly isPurchase?: boolean;
  readonly key?: string | undefined;
}

interface Running {
  readonly process: SimulatedProcess;
  readonly shelf: SimulatedShelf;
  readonly store: Store;
  /** Calls of the upstream that others may join. */
  readonly flights: Map<string, Promise<Answer | 'refused'>>;
  /** Sent, and not answered yet. */
  readonly open: Set<Write>;
}

interface Fetch {
  readonly name: string;
  readonly tag: ReadTag;
  readonly snapshot: Snapshot;
  readonly found: Found;
  /** What the store does after the answer. */
  readonly promised: readonly Promise<unknown>[];
}

/** A gateway over the store: it looks, joins calls, marks, sends and tells, as the real one does. Killed, it starts anew. */
export class Instance {
  readonly name: string;
  /** Of writes that were not sent, by processes that are alive. */
  readonly notSent = new Map<string, Running>();
  readonly address: { node: RedisNode };
  readonly #world: World;
  #running: Running;

  constructor(name: string, world: World, node: RedisNode) {
    this.name = name;
    this.address = { node };
    this.#world = world;
    this.#running = this.#start();
  }

  get shelf(): SimulatedShelf {
    return this.#running.shelf;
  }

  get process(): SimulatedProcess {
    return this.#running.process;
  }

  /** Runs what a client asks for, as soon as the process can. */
  run(what: () => Promise<unknown>): void {
    this.process.run(() => void what());
  }

  async read(tag: ReadTag, session?: SessionId): Promise<'copy' | 'fetched' | 'hidden' | 'refused'> {
    const { time, judge } = this.#world;
    const running = this.#running;
    const due = judge.due(tag);
    const promised: Promise<unknown>[] = [];
    const key = this.#keyOf(tag);
    const snapshot = await running.store.snapshot({
      account: ACCOUNT,
      window: undefined,
      keys: [key],
      session,
      waitUntil: (promise) => promised.push(promise),
    });
    if (session && snapshot.session?.isOver === false && !snapshot.session.isLocal) judge.letIn(session.id, due.began);
    const found = await snapshot.lookup(key);
    if (found.entry && found.entry.storedAt + key.freshMs > time.now) {
      judge.given(tag, JSON.parse(found.entry.text) as Answer, due, 'copy'); // written by `#fetch`
      return 'copy';
    }
    const name = `${tag} ${found.version}`;
    let flight = running.flights.get(name);
    if (!flight) {
      flight = this.#fetch(running, { name, tag, snapshot, found, promised });
      running.flights.set(name, flight);
    }
    const answer = await flight;
    if (answer === 'refused') return 'refused';
    judge.given(tag, answer, due, 'fetched answer');
    return found.isHidden ? 'hidden' : 'fetched';
  }

  async write({ tags, isPurchase = false, key }: WriteAsk): Promise<Heard> {
    const { time, random, judge, faultsUntil } = this.#world;
    const running = this.#running;
    const { process, store } = running;
    judge.counts.writes++;
    const write: Write = {
      nonce: uniqueName('write'),
      tags,
      isPurchase,
      key,
      askedAt: time.now,
      answeredAt: Infinity,
    };
    const told: NewWrite = {
      account: ACCOUNT,
      window: undefined,
      waitUntil: () => undefined,
      tags,
      hasCopies: true,
      now: time.now,
      nonce: write.nonce,
      endsAt: time.now + REQUEST_MS,
      until: time.now + REQUEST_MS + LATE_MS,
      key,
      keyMs: KEEP_KEYS_MS,
      fingerprint: isPurchase ? 'purchase' : '',
      isPurchase,
    };
    const { record, refusal } = await store.beginWrite(told);
    if (refusal) {
      void this.#wasNotSent(running, told);
      return 'unavailable';
    }
    if (typeof record?.outcome === 'object') {
      judge.replayed(record.outcome.text ?? '');
      return 'replayed';
    }
    if (record) return record.outcome;
    write.begunAt = time.now;
    if (random() < 0.02 && time.now < faultsUntil) this.standStill(random() * 18_000);
    if (random() < 0.5) await process.pause(random() * 30);
    if (time.now - write.askedAt >= REQUEST_MS) {
      void this.#wasNotSent(running, told);
      await store.endWrite(told, 'not_sent');
      return 'unavailable';
    }
    write.sentAt = time.now;
    judge.sends(write);
    running.open.add(write);
    if (random() < 0.03 && time.now < faultsUntil) process.after(random() * 400, () => this.kill(running));
    const outcome = await this.#send(write, process);
    write.outcome = outcome;
    write.overAt = time.now;
    judge.say(`${write.nonce} is ${outcome}`);
    const end: WriteEnd = outcome === 'done' ? { status: 200, text: write.nonce, at: time.now } : outcome;
    await store.endWrite(told, end);
    running.open.delete(write);
    write.answeredAt = Math.min(write.answeredAt, time.now);
    return outcome;
  }

  async question(key: string): Promise<void> {
    const { time, judge } = this.#world;
    const askedAt = time.now;
    const { record, refusal } = await this.#running.store.outcomeOf({
      account: ACCOUNT,
      window: undefined,
      waitUntil: () => undefined,
      key,
    });
    if (typeof record?.outcome === 'object') judge.replayed(record.outcome.text ?? '');
    else if (!record && !refusal) judge.notFound(key, askedAt);
  }

  async signOut(session: SessionId): Promise<void> {
    const { time, judge } = this.#world;
    const askedAt = time.now;
    const request = { account: ACCOUNT, waitUntil: () => undefined };
    const isKnown = await this.#running.store.revoke(request, session, 'one');
    if (isKnown) judge.signedOut(session.id, askedAt);
  }

  standStill(ms: number): void {
    this.#world.judge.say(`${this.name} stands still for ${ms.toFixed(0)}`);
    this.process.standStill(ms);
  }

  /** Whoever waits for its answers now hears nothing. It starts anew, and knows nothing. */
  kill(running = this.#running): void {
    if (running !== this.#running) return;
    const { time, random, judge } = this.#world;
    judge.say(`${this.name} is killed`);
    running.process.isAlive = false;
    const { connection } = running.shelf;
    connection.close();
    if (random() < 0.3) connection.losesCommands = true;
    for (const write of running.open) {
      write.answeredAt = Math.min(write.answeredAt, time.now);
      write.overAt ??= time.now;
      write.isCrashed = true;
    }
    time.after(random() * 1_000, () => {
      if (running === this.#running) this.#running = this.#start();
    });
  }

  /** Its address leads elsewhere; the connection that it has breaks. */
  lead(node: RedisNode): void {
    this.address.node = node;
    if (this.shelf.connection.node !== node) this.cut(this.#world.random() < 0.5, 50);
  }

  /** Nothing comes back any more, which is noticed within so many milliseconds; perhaps nothing arrives either. */
  cut(losesCommands: boolean, withinMs: number): void {
    const { shelf, process } = this.#running;
    const { connection } = shelf;
    if (losesCommands) connection.losesCommands = true;
    connection.losesReplies = true;
    process.after(this.#world.random() * withinMs, () => shelf.lose(connection));
  }

  #start(): Running {
    const { time, judge, copyMs } = this.#world;
    judge.started();
    const process = new SimulatedProcess(time);
    const shelf = new SimulatedShelf(process, this.#world, this.address);
    const backend = new SealedNotes(shelf, { seal: plain, nameOf, noteMs: copyMs + NOTE_OUTLIVES_COPY_MS });
    const store = new Store({ backend, clock: process.clock, maxBytes: 1_048_576 });
    return { process, shelf, store, flights: new Map(), open: new Set() };
  }

  /** Whoever stands still until its mark is over does not tell the store any more; while it does no time is left to it. */
  async #wasNotSent(running: Running, { nonce, until }: NewWrite): Promise<void> {
    const { process } = running;
    for (let ms = 0; ms < TELL_MS; ms += 500) await process.pause(500);
    if (process.clock.now() < until) this.notSent.set(nonce, running);
  }

  #keyOf(tag: ReadTag): CacheKey {
    const { copyMs } = this.#world;
    return { key: tag, tags: [tag], freshMs: copyMs, lifeMs: copyMs };
  }

  async #fetch(running: Running, { name, tag, snapshot, found, promised }: Fetch): Promise<Answer | 'refused'> {
    const { time, random, judge, delay, refusing, faultsUntil } = this.#world;
    const { process, flights } = running;
    await process.pause(delay() + (random() < 0.1 ? random() * 2_500 : 0));
    const answer = judge.answer(tag);
    const isRefused = random() < refusing && time.now < faultsUntil;
    await process.pause(delay() + random() * (random() < 0.15 ? 2_500 : 200));
    flights.delete(name);
    if (isRefused) {
      void snapshot.save(this.#keyOf(tag), found, { drop: 'everything' });
      void promised.at(-1)?.then((isTold) => isTold === true && judge.refused(answer.at));
      return 'refused';
    }
    const entry: Entry = {
      text: JSON.stringify(answer),
      links: [],
      etag: '',
      storedAt: time.now,
      storedWall: time.now,
      validators: {},
    };
    void snapshot.save(this.#keyOf(tag), found, { entry });
    return answer;
  }

  /** Few are refused, of some nobody knows the outcome, which may be carried out later, most are answered. */
  async #send(write: Write, process: SimulatedProcess): Promise<'done' | 'refused' | 'unknown'> {
    const { time, random, judge, delay } = this.#world;
    const luck = random();
    const usual = random() < 0.3 ? random() * 2_000 : random() * 200;
    const ms = delay() + (random() < 0.1 ? random() * 3_900 : usual);
    if (luck < 0.08) {
      await process.pause(ms);
      return 'refused';
    }
    if (luck < 0.22) {
      const latest = write.askedAt + REQUEST_MS + LATE_MS - 10;
      if (random() < 0.7) time.at(Math.min(time.now + ms + random() * 7_000, latest), () => judge.carryOut(write));
      await process.pause(ms);
      return 'unknown';
    }
    time.after(ms * random(), () => judge.carryOut(write));
    await process.pause(ms);
    return 'done';
  }
}
