import { randomUUID } from 'node:crypto';
import type { Connection } from './connection.ts';

interface RollCallOptions {
  readonly connection: Connection;
  /** Of each secret one, by which instances know each other. */
  readonly marks: readonly string[];
  /** Writes again what this instance has written, into a store that came back empty. */
  readonly writeAgain: (onProgress: () => Promise<unknown>) => Promise<void>;
  /** What is wrong with the store, in a word. */
  readonly onTrouble: (reason: string) => void;
  /** Comes with beats that the store has answered, once the last such has come out. */
  readonly onBeat: () => Promise<void>;
}

export const LIFE_KEY = 'portico:life';
const PEERS_KEY = 'portico:peers';
const WRITING_KEY = 'portico:writing';

const BEAT_MS = 200;
/** A peer that was not heard of for so long is gone: longer than one that is only stalled. */
const PEER_MS = 5_000;
/** One who writes again says so more often than this. */
const WRITING_MS = 2_000;
/** One that has not said that it leaves may be cut off, and write what the store does not hear of. */
const SILENT_MS = 1_000;
const REMEMBERED_MS = 600_000;
const LIFE_MS = 86_400_000;
/** Of the store's memory; above it no copies are kept, so that there is room for what must be. */
const FILLING = 0.75;
/** How old a store is in which all who knew an earlier one have written again; who comes new cannot know whether there was one. */
const SETTLED_MS = 1_000;
/** How long a write waits for the roll call. */
const PATIENCE_MS = 1_500;

/** Instances that have not written again yet, where they are known, and until when they are waited for. */
interface Gathering {
  readonly missing: ReadonlySet<string> | undefined;
  readonly until: number;
}

interface Beat {
  readonly life: string;
  readonly ageMs: number;
  readonly peers: readonly string[];
  /** Instances that write again just now. */
  readonly writing: number;
}

/**
 * Keeps what was promised when the store comes back empty. The store has a life, which every instance knows by name; who
 * finds another one writes its records again and then answers the roll call. Nobody takes a key before all those who
 * were there have answered, or have been silent for too long.
 */
export class RollCall {
  readonly #me: string;
  readonly #of: RollCallOptions;
  #life: string | undefined;
  #peers: readonly string[] = [];
  #gathering: Gathering | undefined;
  #next: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;
  #waiting: (() => void)[] = [];
  #isClosed = false;
  #isFilling = false;
  #isWhole = true;
  #isTelling = false;

  constructor(options: RollCallOptions) {
    this.#of = options;
    this.#me = [randomUUID(), ...options.marks].join(' ');
  }

  /** Comes out after the first beat, whatever came of it. Each new connection begins with one. */
  begin(): Promise<void> {
    this.#of.connection.onReady(() => void this.#beatNow());
    return this.#beatNow();
  }

  /** The life of the store, once nobody is missing. @throws without a connection, or where that takes too long */
  async complete(): Promise<string> {
    const { connection } = this.#of;
    const until = Date.now() + PATIENCE_MS;
    while (this.#life === undefined || this.#gathering || !connection.isKnown) {
      const leftMs = until - Date.now();
      if (leftMs <= 0 || !connection.isOpen) throw new Error('the store is not complete');
      await this.#nextBeat(leftMs);
    }
    return this.#life;
  }

  /** Whether every instance is heard of, but for those that have left. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether copies would take the room of what has to be kept. */
  get isStoreFilling(): boolean {
    return this.#isFilling;
  }

  /** Somebody has seen that the store is another one. */
  lookAgain(): void {
    this.#gather();
    void this.#beatNow();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#next);
    await this.#underWay; // whose beat would count this one in again
    const { connection } = this.#of;
    await connection.run('leave', { keys: [PEERS_KEY], args: [this.#me] }).catch(() => undefined);
  }

  /** One at a time, and the next a while after. */
  #beatNow(): Promise<void> {
    clearTimeout(this.#next);
    this.#underWay ??= this.#beat()
      .catch(() => undefined)
      .finally(() => {
        this.#underWay = undefined;
        if (!this.#isClosed) this.#next = setTimeout(() => void this.#beatNow(), BEAT_MS).unref();
        for (const go of this.#waiting.splice(0)) go();
      });
    return this.#underWay;
  }

  async #beat(): Promise<void> {
    const { connection, onBeat } = this.#of;
    const beat = await this.#ask();
    if (beat.life === this.#life) this.#look(beat);
    else await this.#meet(beat);
    connection.isKnown = true;
    if (!this.#isTelling) void this.#tell(onBeat);
  }

  /** Beside the beats: with much to tell it takes longer than one. */
  async #tell(onBeat: () => Promise<void>): Promise<void> {
    this.#isTelling = true;
    await onBeat().catch(() => undefined);
    this.#isTelling = false;
  }

  /** A store that is not the one known, or the first. */
  async #meet({ life, ageMs }: Beat): Promise<void> {
    if (this.#life === undefined) {
      this.#gathering = { missing: undefined, until: Date.now() + SETTLED_MS - ageMs };
    } else {
      this.#gather();
      const sayWriting = () => this.#ask('writing');
      await sayWriting();
      await this.#of.writeAgain(sayWriting);
    }
    this.#life = life;
    this.#look(await this.#ask());
  }

  /** Also for those who were missing already. */
  #gather(): void {
    const missing = new Set([...(this.#gathering?.missing ?? []), ...this.#peers]);
    this.#gathering = { missing, until: Date.now() + PEER_MS };
  }

  /** Whether all have answered whose answer is waited for. */
  #look({ peers, writing }: Beat): void {
    this.#peers = peers;
    if (peers.some((peer) => !this.#isKin(peer))) this.#of.onTrouble('OTHER_SECRETS');
    const { missing, until = 0 } = this.#gathering ?? {};
    const isWhole = missing && [...missing].every((peer) => peers.includes(peer));
    if ((Date.now() >= until || isWhole) && writing === 0) this.#gathering = undefined;
  }

  /** Without a secret in common neither finds what the other has recorded. */
  #isKin(peer: string): boolean {
    const [, ...marks] = peer.split(' ');
    return marks.some((mark) => this.#of.marks.includes(mark));
  }

  async #ask(doing: '' | 'writing' = ''): Promise<Beat> {
    const reply = (await this.#of.connection.run('beat', {
      keys: [LIFE_KEY, PEERS_KEY, WRITING_KEY],
      args: [randomUUID(), LIFE_MS, this.#me, this.#life ?? '', PEER_MS, doing, WRITING_MS, REMEMBERED_MS, SILENT_MS],
    })) as [Buffer, number, Buffer[], number, Buffer, number, Buffer];
    const [life, ageMs, peers, writing, used, silent, policy] = reply;
    this.#isFilling = Number(String(used)) > FILLING;
    this.#isWhole = silent === 0;
    if (!['', 'noeviction'].includes(String(policy))) this.#of.onTrouble('EVICTS');
    return { life: String(life), ageMs, peers: peers.map(String), writing };
  }

  #nextBeat(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
