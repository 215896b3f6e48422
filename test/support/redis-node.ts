import { FIRST_REV, REV } from '../../src/store/sealed.ts';

/** Nobody asked for so long: it may be that all were elsewhere. */
const ALONE_MS = 2_500;
const PAST_TOKENS = 100;
const COPY_VERSION_BYTES = 16;
const LATER_MS = 60_000;

interface Time {
  now(): number;
}

interface Value {
  readonly bytes: Uint8Array;
  readonly expiresAt: number;
}

interface Identity {
  readonly run: string;
  readonly token: string;
  readonly since: number;
  readonly past: readonly string[];
  readonly heard: number;
}

interface Counted {
  readonly used: number;
  readonly endsAt: number;
}

export interface Data {
  identity: Identity | undefined;
  token: string | undefined;
  readonly values: Map<string, Value>;
  readonly counts: Map<string, Counted>;
}

export const noData = (): Data => ({ identity: undefined, token: undefined, values: new Map(), counts: new Map() });

export const copyOf = ({ identity, token, values, counts }: Data): Data => ({
  identity,
  token,
  values: new Map(values),
  counts: new Map(counts),
});

export interface Hello {
  readonly token: string;
  readonly since: number;
  readonly now: number;
}

export interface NewValue {
  readonly name: string;
  readonly bytes: Uint8Array | undefined;
  readonly lifeMs: number;
}

const decoder = new TextDecoder();
let names = 0;
/** Unlike all others. */
export const uniqueName = (what: string) => `${what}${++names}`;

/** Redis as far as the protocol uses it: one command or script after the other, each at once or refused. */
export class RedisNode {
  run = uniqueName('run');
  isPrimary: boolean;
  /** A primary that has fewer replicas than `min-replicas-to-write`. */
  lacksReplicas = false;
  stoppedUntil = -Infinity;
  data = noData();
  /** Carries what was written to the replica. */
  onWrite: () => void = () => undefined;
  readonly #time: Time;

  constructor(isPrimary: boolean, time: Time) {
    this.isPrimary = isPrimary;
    this.#time = time;
  }

  /** Whether it refuses what writes. */
  get refuses(): boolean {
    return !this.isPrimary || this.lacksReplicas;
  }

  hello(token: string): Hello {
    const now = this.#time.now();
    const { data } = this;
    const known = data.identity;
    const isKnown = token === '' || token === known?.token || known?.past.includes(token) === true;
    const isSame = known !== undefined && known.run === this.run && data.token === known.token && isKnown;
    const isAlone = token === '' && known !== undefined && now - known.heard > ALONE_MS;
    const since = isSame ? Math.min(known.since, now) : now;
    if (isSame && !isAlone) {
      data.identity = { ...known, since, heard: now };
    } else {
      const past = known ? [known.token, ...known.past].slice(0, PAST_TOKENS) : [];
      data.token = uniqueName('token');
      data.identity = { run: this.run, token: data.token, since, past, heard: now };
    }
    this.onWrite();
    return { token: data.token ?? '', since, now };
  }

  read(keys: readonly string[]): { readonly token: string; readonly values: readonly (Uint8Array | undefined)[] } {
    return { token: this.data.token ?? '', values: keys.map((key) => this.#live(key)?.bytes) };
  }

  swap(token: string, seen: string, note: NewValue, record: NewValue | undefined): 'done' | 'other' | 'elsewhere' {
    const { data } = this;
    if (data.identity?.token !== token) return 'elsewhere';
    if (this.#headOf(note.name) !== seen) return 'other';
    this.#set(note, this.#live(note.name)?.expiresAt);
    if (record?.bytes) this.#set(record);
    else if (record) data.values.delete(record.name);
    this.onWrite();
    return 'done';
  }

  keep(seen: string, note: NewValue, copy: NewValue | undefined): boolean {
    if ((this.#headOf(note.name) || FIRST_REV) !== seen) return false;
    const kept = this.#live(note.name);
    this.#set({ ...note, bytes: kept?.bytes ?? note.bytes }, kept?.expiresAt);
    const before = copy && this.#live(copy.name)?.bytes;
    const isLess = before && copy.bytes && isLater(before, copy.bytes);
    if (copy && !isLess) this.#set(copy);
    this.onWrite();
    return true;
  }

  count(name: string, lengthMs: number, many: number): Counted {
    const now = this.#time.now();
    const before = this.data.counts.get(name);
    const live = before && before.endsAt > now ? before : { used: 0, endsAt: now + lengthMs };
    const counted = { ...live, used: live.used + many };
    this.data.counts.set(name, counted);
    this.onWrite();
    return counted;
  }

  /** Of a note; '' where there is none. */
  #headOf(name: string): string {
    return decoder.decode(this.#live(name)?.bytes.subarray(0, REV) ?? new Uint8Array());
  }

  #live(key: string): Value | undefined {
    const value = this.data.values.get(key);
    return value && value.expiresAt > this.#time.now() ? value : undefined;
  }

  #set({ name, bytes, lifeMs }: NewValue, least = 0): void {
    if (bytes) this.data.values.set(name, { bytes, expiresAt: Math.max(least, this.#time.now() + lifeMs) });
  }
}

const versionOf = (copy: Uint8Array) => decoder.decode(copy.subarray(0, COPY_VERSION_BYTES));

const askedAt = (copy: Uint8Array) => new DataView(copy.buffer, copy.byteOffset).getFloat64(COPY_VERSION_BYTES);

/** Of the same version, and asked for later, by less than a minute: what is further ahead is of a clock that was set. */
function isLater(before: Uint8Array, copy: Uint8Array): boolean {
  const ahead = askedAt(before) - askedAt(copy);
  return versionOf(before) === versionOf(copy) && ahead > 0 && ahead < LATER_MS;
}
