import { hash } from 'node:crypto';
import type { Clock } from '../../src/core/runtime.ts';
import type { Count, Swapped } from '../../src/store/backend.ts';
import type { AccountId, Window } from '../../src/store/port.ts';
import {
  COPY_HEAD,
  FIRST_REV,
  NOTE,
  REV,
  type Seal,
  type SealedNext,
  type SealedValue,
  type Shelf,
} from '../../src/store/sealed.ts';

type Time = Pick<Clock, 'now'>;

export type Method = 'read' | 'swap' | 'keep' | 'count';

/** A store: what all of its instances see. */
interface Kept {
  readonly token: string;
  readonly reliableAt: number;
  readonly values: Map<string, { readonly value: Uint8Array; readonly until: number }>;
  readonly windows: Map<string, Count>;
}

const VERSION_BYTES = 16;
const LATER_MS = 60_000;
/** How long one that takes the place of another is not relied on. */
const UNRELIABLE_MS = 15_000;

let tokens = 0;

const emptyStore = (reliableAt: number): Kept => ({
  token: `token-${++tokens}`,
  reliableAt,
  values: new Map(),
  windows: new Map(),
});

/** A shared store in this process, as one instance sees it. Its time is that of the clock. */
export class FakeShelf implements Shelf {
  /** All calls so far. */
  readonly calls: Method[] = [];
  /** No call gets an answer. */
  isAway = false;
  /** No write begins. */
  isFull = false;
  /** Runs before a call arrives at the store; what it throws is the answer. */
  before: (method: Method) => Promise<unknown> | undefined = () => undefined;
  /** Runs before the answer arrives; what it throws takes the place of the answer. */
  after: (method: Method) => Promise<unknown> | undefined = () => undefined;
  readonly #time: Time;
  readonly #store: { kept: Kept };

  constructor(time: Time, store = { kept: emptyStore(-Infinity) }) {
    this.#time = time;
    this.#store = store;
  }

  /** The same store as another instance sees it. */
  beside(): FakeShelf {
    return new FakeShelf(this.#time, this.#store);
  }

  /** An empty store takes its place, and all instances know it. */
  replace(): void {
    this.#store.kept = emptyStore(this.now() + UNRELIABLE_MS);
  }

  times(method: Method): number {
    return this.calls.filter((one) => one === method).length;
  }

  now(): number {
    return this.#time.now();
  }

  get token(): string {
    return this.#store.kept.token;
  }

  get reliableAt(): number {
    return this.#store.kept.reliableAt;
  }

  read(account: AccountId, names: readonly string[]) {
    return this.#call('read', () => ({ token: this.token, values: names.map((name) => this.#get(account, name)) }));
  }

  swap(account: AccountId, seen: string, { note, record, isBeginning }: SealedNext): Promise<Swapped> {
    return this.#call('swap', () => {
      const there = this.#get(account, NOTE);
      if (seen !== (there ? revOf(there) : '')) return 'other';
      if (isBeginning && this.isFull) return 'full';
      this.#set(account, note, this.#untilOf(account));
      if (record?.value) this.#set(account, { ...record, value: record.value });
      else if (record) this.#store.kept.values.delete(`${account} ${record.name}`);
      return 'done';
    });
  }

  keep(account: AccountId, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean> {
    return this.#call('keep', () => {
      const before = this.#get(account, NOTE);
      if ((before ? revOf(before) : FIRST_REV) !== seen) return false;
      this.#set(account, { ...note, value: before ?? note.value }, this.#untilOf(account));
      const there = copy && this.#get(account, copy.name);
      if (copy && !(there && isLater(there, copy.value))) this.#set(account, copy);
      return true;
    });
  }

  count(account: AccountId, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, many: number): Promise<Count> {
    return this.#call('count', () => {
      const { windows } = this.#store.kept;
      const known = windows.get(`${account} ${name}`);
      const open = known && known.endsAt > this.now() ? known : { used: 0, endsAt: this.now() + lengthMs };
      const counted = { ...open, used: open.used + many };
      windows.set(`${account} ${name}`, counted);
      return counted;
    });
  }

  async #call<T>(method: Method, act: () => T): Promise<T> {
    this.calls.push(method);
    await this.before(method);
    if (this.isAway) throw new Error('away');
    const answer = act();
    await this.after(method);
    return answer;
  }

  #get(account: AccountId, name: string): Uint8Array | undefined {
    const found = this.#store.kept.values.get(`${account} ${name}`);
    return found && found.until > this.now() ? found.value : undefined;
  }

  #untilOf(account: AccountId): number {
    return this.#store.kept.values.get(`${account} ${NOTE}`)?.until ?? 0;
  }

  #set(account: AccountId, { name, value, lifeMs }: SealedValue, least = 0): void {
    this.#store.kept.values.set(`${account} ${name}`, { value, until: Math.max(least, this.now() + lifeMs) });
  }
}

/** Of the same version, and asked for later by less than a minute. */
function isLater(there: Uint8Array, copy: Uint8Array): boolean {
  const [one, other] = [there, copy].map((value) => Buffer.from(value.subarray(0, COPY_HEAD)));
  const laterMs = one!.readDoubleBE(VERSION_BYTES) - other!.readDoubleBE(VERSION_BYTES);
  return (
    one!.toString('latin1', 0, VERSION_BYTES) === other!.toString('latin1', 0, VERSION_BYTES) &&
    laterMs > 0 &&
    laterMs < LATER_MS
  );
}

/** Anybody can open it who knows the name. */
export const fakeSeal: Seal = {
  seal: (name, text) => Buffer.from(Buffer.from(`${name}\n${text}`).toString('base64')),
  open(name, value) {
    const text = Buffer.from(Buffer.from(value).toString(), 'base64').toString();
    return text.startsWith(`${name}\n`) ? text.slice(name.length + 1) : undefined;
  },
};

export const fakeNameOf = (text: string): string => hash('sha256', text, 'base64url');

const revOf = (note: Uint8Array) => Buffer.from(note.subarray(0, REV)).toString();
