import { Bag } from '../../../core/bag.ts';
import type { Metrics } from '../../../core/metrics.ts';
import type { OpenCircuit, Recorded, Recorder, UnknownOutcome } from '../../../core/recorder.ts';
import { factsOf } from './facts.ts';
import { type Load, OwnLoad } from './load.ts';
import { Recent } from './recent.ts';
import { Ring } from './ring.ts';

const MOST_ENDED = 200;
const MOST_UNKNOWN = 100;
/** Of both together 2 MB. */
const ENDED_BYTES = 1_900_000;
const UNKNOWN_BYTES = 100_000;

export const MOST_UNDER_WAY = 50;
export const MOST_ACCOUNTS = 10;
const ACCOUNTS_MS = 60_000;

/** How often something happened, and how long all of it took. */
export interface Times {
  count: number;
  ms: number;
}

/** What is so at the moment. */
export type Present = ReturnType<Recordings['present']>;

/** What the console shows besides metrics: of this process, or of several workers. */
export interface Shown extends Kept {
  /** Whether somebody looks. */
  isWatched: boolean;
  /** Calls of the upstream since the last time, by reason; those that did not fail by outcome. */
  takeCalls(): ReadonlyMap<string, Readonly<Times>>;
  takeLoad(): Load;
  present(now: number): Present;
}

/** JSON texts, of the last requests that were slow or failed, and of the last writes of unknown outcome. */
interface Kept {
  readonly ended: Ring;
  readonly unknownOutcomes: Ring;
}

export const keptTexts = (): Kept => ({
  ended: new Ring(MOST_ENDED, ENDED_BYTES),
  unknownOutcomes: new Ring(MOST_UNKNOWN, UNKNOWN_BYTES),
});

/** Of this process. Requests and calls are counted, and those under way kept, only while somebody looks. */
export class Recordings implements Recorder, Shown {
  readonly ended: Ring;
  readonly unknownOutcomes: Ring;
  readonly #load = new OwnLoad();
  readonly #underWay = new Bag<Recorded>();
  #asked: Recent | undefined;
  #calls = new Map<string, Times>();
  #circuit: () => OpenCircuit | undefined = () => undefined;

  constructor({ ended, unknownOutcomes } = keptTexts()) {
    this.ended = ended;
    this.unknownOutcomes = unknownOutcomes;
  }

  begun(request: Recorded): (() => void) | undefined {
    return this.#asked && this.#underWay.add(request);
  }

  answered(account: string | undefined, isBad: boolean, now: number): void {
    if (!this.#asked || account === undefined) return;
    this.#asked.count('calls', now, account);
    if (isBad) this.#asked.count('marked', now, account);
  }

  noteworthy(request: Recorded, ended: { readonly status: number; readonly endedAt: number }): void {
    this.ended.add(JSON.stringify(factsOf(request, ended)));
  }

  unknown(write: UnknownOutcome): void {
    this.unknownOutcomes.add(JSON.stringify({ ...write, at: Math.round(write.at) }));
  }

  watchCircuit(read: () => OpenCircuit | undefined): void {
    this.#circuit = read;
  }

  /** The same metrics, whose calls of the upstream are heard of here too. */
  hearing(metrics: Metrics): Metrics {
    const callDone: Metrics['callDone'] = (labels, ms) => {
      metrics.callDone(labels, ms);
      if (this.#asked) this.#count(labels.reason ? `failed ${labels.reason}` : labels.outcome, ms);
    };
    return { ...metrics, callDone };
  }

  get isWatched(): boolean {
    return this.#asked !== undefined;
  }

  set isWatched(is: boolean) {
    if (is === this.isWatched) return;
    this.#asked = is ? new Recent(ACCOUNTS_MS) : undefined;
    this.#calls = new Map();
    this.#load.isWatched = is;
  }

  takeLoad(): Load {
    return this.#load.take();
  }

  takeCalls(): ReadonlyMap<string, Readonly<Times>> {
    const calls = this.#calls;
    this.#calls = new Map();
    return calls;
  }

  /** Requests under way, the oldest first; accounts that asked most in the last minute; the circuit. */
  present(now: number) {
    const oldest = Array.from(this.#underWay).toSorted((a, b) => a.startedAt - b.startedAt);
    const accounts = this.#asked?.most(now, MOST_ACCOUNTS) ?? [];
    return {
      underWay: oldest.slice(0, MOST_UNDER_WAY).map((request) => factsOf(request, { endedAt: now })),
      underWayCount: oldest.length,
      accounts: accounts.map(([account, { calls, marked }]) => ({ account, requests: calls, bad: marked })),
      circuit: this.#circuit() ?? null,
    };
  }

  #count(what: string, ms: number): void {
    const times = this.#calls.get(what) ?? { count: 0, ms: 0 };
    times.count++;
    times.ms += ms;
    this.#calls.set(what, times);
  }
}
