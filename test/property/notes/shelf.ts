import type { Swapped } from '../../../src/store/backend.ts';
import type { AccountId, Window } from '../../../src/store/port.ts';
import type { SealedNext, SealedValue, Shelf } from '../../../src/store/sealed.ts';
import { Connection, Refused } from './connection.ts';
import type { NewValue, RedisNode } from './redis-node.ts';
import type { SimulatedProcess } from './time.ts';
import { HELLO_MS, SILENCE_MS, WINDOW_MS } from './times.ts';
import type { World } from './world.ts';

const newValue = ({ name, value, lifeMs }: { name: string; value?: Uint8Array; lifeMs: number }): NewValue => ({
  name,
  bytes: value,
  lifeMs,
});

/** Sealed values in Redis, as one instance reaches them: HELLO, and what follows from its answers. */
export class SimulatedShelf implements Shelf {
  token = '';
  reliableAt = Infinity;
  connection: Connection;
  #aheadMs = 0;
  #heardAt = -Infinity;
  #saying: Promise<void> | undefined;
  readonly #process: SimulatedProcess;
  readonly #world: World;
  readonly #address: { readonly node: RedisNode };

  /** `address`: where it leads may change. */
  constructor(process: SimulatedProcess, world: World, address: { readonly node: RedisNode }) {
    this.#process = process;
    this.#world = world;
    this.#address = address;
    this.connection = this.#connect();
    this.#helloEachSecond();
  }

  now(): number {
    return this.#world.time.now + this.#aheadMs;
  }

  get isThere(): boolean {
    const isSilent = this.#world.time.now - this.#heardAt >= SILENCE_MS && !this.#world.without.has('silence');
    return this.connection.isReady && this.#heardAt !== -Infinity && !isSilent;
  }

  async read(_: AccountId, names: readonly string[]) {
    const said = await this.#ask(false, (node) => node.read(names));
    if (said.token !== this.token && !this.#world.without.has('readToken')) {
      await this.#hello();
      throw new Error('another store');
    }
    return said;
  }

  async swap(_: AccountId, seen: string, { note, record }: SealedNext): Promise<Swapped> {
    const { token } = this;
    const swapped = await this.#ask(true, (node) => node.swap(token, seen, newValue(note), record && newValue(record)));
    if (swapped !== 'elsewhere') return swapped;
    await this.#hello();
    throw new Error('another store');
  }

  keep(_: AccountId, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean> {
    return this.#ask(true, (node) => node.keep(seen, newValue(note), copy && newValue(copy)));
  }

  count(_: AccountId, { name, lengthMs }: Pick<Window, 'name' | 'lengthMs'>, many: number) {
    return this.#ask(true, (node) => node.count(name, lengthMs, many));
  }

  /** The connection is broken, and its client notices now. */
  lose(connection: Connection): void {
    if (!connection.isOpen) return;
    connection.close();
    const { random, without } = this.#world;
    if (random() < 0.5) connection.losesCommands = true; // else what is on its way is still carried out
    if (this.connection !== connection) return;
    if (!without.has('helloFirst')) this.#heardAt = -Infinity;
    this.#process.after(10 + random() * (random() < 0.3 ? 2_500 : 400), () => {
      if (this.connection === connection) this.connection = this.#connect();
    });
  }

  #ask<T>(writes: boolean, run: (node: RedisNode) => T): Promise<T> {
    if (!this.isThere) return Promise.reject(new Error('there is no store'));
    return this.connection.ask({ writes, run });
  }

  #connect(): Connection {
    const connection = new Connection(this.#process, {
      world: this.#world,
      node: this.#address.node,
      onGivenUp: (one) => this.lose(one),
    });
    const greeted = connection.ask({ writes: false, run: () => undefined });
    greeted.then(
      () => {
        connection.isReady = true;
        void this.#hello();
      },
      () => undefined,
    );
    return connection;
  }

  #helloEachSecond(): void {
    this.#process.after(HELLO_MS, () => {
      void this.#hello();
      this.#helloEachSecond();
    });
  }

  /** One at a time: another would bring the token of before. */
  #hello(): Promise<void> {
    this.#saying ??= this.#sayHello().finally(() => {
      this.#saying = undefined;
    });
    return this.#saying;
  }

  async #sayHello(): Promise<void> {
    const { connection, token } = this;
    if (!connection.isReady) return;
    const sentAt = this.#world.time.now;
    try {
      const said = await connection.ask({ writes: true, run: (node) => node.hello(token) });
      if (connection !== this.connection) return;
      this.token = said.token;
      this.#aheadMs = said.now - this.#world.time.now;
      this.reliableAt = said.since + WINDOW_MS;
      this.#heardAt = sentAt;
    } catch (error) {
      if (error instanceof Refused) this.#heardAt = -Infinity;
    }
  }
}
