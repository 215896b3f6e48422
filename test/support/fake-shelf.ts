import { hash } from 'node:crypto';
import type { Clock } from '../../src/core/runtime.ts';
import type { Swapped } from '../../src/store/backend.ts';
import type { AccountId, Period, WindowUse } from '../../src/store/port.ts';
import type { Seal, SealedNext, SealedValue, Shelf } from '../../src/store/sealed.ts';
import { type Data, noData, RedisNode } from './redis-node.ts';

type Time = Pick<Clock, 'now'>;

export type Method = 'read' | 'swap' | 'keep' | 'count';

/** A call of the store that waits for the test: on its way there, or, carried out, on its way back. */
export interface HeldCall {
  /** Resolves once it waits. */
  readonly call: Promise<void>;
  release(): void;
  /** The connection breaks. */
  lose(): void;
}

interface Hold {
  readonly method: Method;
  readonly way: 'going' | 'coming';
  wait(): Promise<void>;
}

/** How long a store that takes the place of another is not relied on. */
const UNRELIABLE_MS = 15_000;

const never = () => new Promise<never>(() => undefined);

/** A store in this process, as one instance reaches it. Its time is that of the clock. */
export class FakeShelf implements Shelf {
  /** All calls so far. */
  readonly calls: Method[] = [];
  /** All that is asked is refused. */
  isAway = false;
  /** No write begins. */
  isFull = false;
  /** Of an instance that was killed: nothing goes out any more, and nothing comes back. */
  isDead = false;
  readonly #time: Time;
  readonly #store: { readonly node: RedisNode; reliableAt: number };
  readonly #holds: Hold[] = [];

  constructor(time: Time, store?: FakeShelf) {
    this.#time = time;
    this.#store = store ? store.#store : { node: new RedisNode(true, time), reliableAt: -Infinity };
    if (!store) this.#store.node.hello('');
  }

  /** The same store as another instance reaches it, whose clock may be another one. */
  beside(): FakeShelf {
    return new FakeShelf(this.#time, this);
  }

  /** All that the store holds now. */
  get data(): Data {
    return this.#store.node.data;
  }

  /** Another store takes its place, empty or with what is given, and all instances know it. */
  replace(data: Data = noData()): void {
    const { node } = this.#store;
    node.data = data;
    data.token = undefined;
    node.hello('');
    this.#store.reliableAt = this.now() + UNRELIABLE_MS;
  }

  /** The next call of this method waits. */
  hold(method: Method, way: Hold['way'] = 'going'): HeldCall {
    const arrived = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    this.#holds.push({
      method,
      way,
      wait() {
        arrived.resolve();
        return released.promise;
      },
    });
    return {
      call: arrived.promise,
      release: released.resolve,
      lose: () => released.reject(new Error('the connection is broken')),
    };
  }

  times(method: Method): number {
    return this.calls.filter((one) => one === method).length;
  }

  now(): number {
    return this.#time.now();
  }

  get token(): string {
    return this.#store.node.data.token ?? '';
  }

  get reliableAt(): number {
    return this.#store.reliableAt;
  }

  read(account: AccountId, names: readonly string[]) {
    return this.#call('read', (node) => node.read(names.map((name) => `${account} ${name}`)));
  }

  swap(account: AccountId, seen: string, { note, record, isBeginning }: SealedNext): Promise<Swapped> {
    const { token } = this;
    return this.#call('swap', (node) => {
      if (isBeginning && this.isFull) return 'full';
      const swapped = node.swap(token, seen, valueOf(account, note), record && valueOf(account, record));
      if (swapped === 'elsewhere') throw new Error('it is another store');
      return swapped;
    });
  }

  keep(account: AccountId, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean> {
    return this.#call('keep', (node) => node.keep(seen, valueOf(account, note), copy && valueOf(account, copy)));
  }

  count(account: AccountId, { name, lengthMs }: Period, many: number): Promise<WindowUse> {
    return this.#call('count', (node) => node.count(`${account} ${name}`, lengthMs, many));
  }

  async #call<T>(method: Method, act: (node: RedisNode) => T): Promise<T> {
    if (this.isDead) return never();
    this.calls.push(method);
    if (this.isAway) throw new Error('away');
    await this.#wait(method, 'going');
    const answer = act(this.#store.node);
    await this.#wait(method, 'coming');
    if (this.isDead) return never();
    return answer;
  }

  async #wait(method: Method, way: Hold['way']): Promise<void> {
    const at = this.#holds.findIndex((one) => one.method === method && one.way === way);
    if (at >= 0) await this.#holds.splice(at, 1)[0]?.wait();
  }
}

const valueOf = (
  account: AccountId,
  { name, value, lifeMs }: { name: string; value?: Uint8Array; lifeMs: number },
) => ({
  name: `${account} ${name}`,
  bytes: value,
  lifeMs,
});

/** Anybody can open it who knows the name. */
export const fakeSeal: Seal = {
  seal: (name, text) => Buffer.from(Buffer.from(`${name}\n${text}`).toString('base64')),
  open(name, value) {
    const text = Buffer.from(Buffer.from(value).toString(), 'base64').toString();
    return text.startsWith(`${name}\n`) ? text.slice(name.length + 1) : undefined;
  },
};

export const fakeNameOf = (text: string): string => hash('sha256', text, 'base64url');
