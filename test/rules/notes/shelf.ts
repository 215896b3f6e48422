import type { Swapped } from '../../../src/store/backend.ts';
import type { AccountId, Period } from '../../../src/store/port.ts';
import type { SealedNext, SealedValue, Shelf } from '../../../src/store/sealed.ts';
import type { NewValue, RedisNode } from '../../support/redis-node.ts';
import type { SimulatedProcess } from './time.ts';
import { HELLO_MS, MAX_OWED_MS, SILENCE_MS, WINDOW_MS, type World } from './world.ts';

/** The node does not take it: it is a replica, or a primary without its replicas. */
class Refused extends Error {}

interface Command<T> {
  /** Whether a node that refuses what writes refuses it. */
  readonly writes: boolean;
  run(node: RedisNode): T;
}

/** A connection of a client to a node. Commands and replies keep their order, may be late, and may be lost. */
class Connection {
  isOpen = true;
  isReady = false;
  /** A proxy may change it. */
  node: RedisNode;
  /** What is on its way to the node is lost; what is on its way back. */
  losesCommands = false;
  losesReplies = false;
  /** Nothing arrives sooner at the node, or at the client. */
  commandsFrom = 0;
  repliesFrom = 0;
  /** Some clients wait for a reply for as long as there is a connection. */
  readonly #givesUp: boolean;
  readonly #owed = new Set<(error: Error) => void>();
  readonly #process: SimulatedProcess;
  readonly #world: World;
  readonly #onGivenUp: (connection: Connection) => void;

  constructor(
    process: SimulatedProcess,
    { world, node, onGivenUp }: { world: World; node: RedisNode; onGivenUp: (connection: Connection) => void },
  ) {
    this.#process = process;
    this.#world = world;
    this.#givesUp = world.random() < 0.7;
    this.node = node;
    this.#onGivenUp = onGivenUp;
  }

  ask<T>(command: Command<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (!this.isOpen) {
        reject(new Error('the connection is closed'));
        return;
      }
      const { time, delay } = this.#world;
      this.#owed.add(reject);
      if (this.#givesUp)
        this.#process.after(MAX_OWED_MS, () => this.isOpen && this.#owed.has(reject) && this.#onGivenUp(this));
      this.commandsFrom = Math.max(this.commandsFrom, time.now + delay());
      const settle = (done: () => void) => {
        if (!this.losesReplies && this.#owed.delete(reject)) this.#process.run(done);
      };
      time.at(this.commandsFrom, () => this.#arrive(command, { resolve, reject, settle }));
    });
  }

  /** Its client has noticed that it is broken, or was killed. */
  close(): void {
    this.isOpen = false;
    this.isReady = false;
    this.losesReplies = true;
    for (const reject of this.#owed) reject(new Error('the connection was closed'));
    this.#owed.clear();
  }

  #arrive<T>(
    command: Command<T>,
    reply: { resolve: (value: T) => void; reject: (error: Error) => void; settle: (done: () => void) => void },
  ): void {
    if (this.losesCommands) return;
    const { time, delay } = this.#world;
    const { node } = this;
    if (time.now < node.stoppedUntil) {
      time.at(node.stoppedUntil, () => this.#arrive(command, reply));
      return;
    }
    const isRefused = command.writes && node.refuses;
    const value = isRefused ? undefined : { is: command.run(node) };
    this.repliesFrom = Math.max(this.repliesFrom, time.now + delay());
    time.at(this.repliesFrom, () =>
      reply.settle(() => (value ? reply.resolve(value.is) : reply.reject(new Refused('the node refuses it')))),
    );
  }
}

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
  #aheadMs = -Infinity;
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
    const isSilent = this.#world.time.now - this.#heardAt >= SILENCE_MS;
    return this.connection.isReady && this.#heardAt !== -Infinity && !isSilent;
  }

  async read(_: AccountId, names: readonly string[]) {
    const said = await this.#ask(false, (node) => node.read(names));
    if (said.token !== this.token) {
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

  count(_: AccountId, { name, lengthMs }: Period, many: number) {
    return this.#ask(true, (node) => node.count(name, lengthMs, many));
  }

  /** The connection is broken, and its client notices now. */
  lose(connection: Connection): void {
    if (!connection.isOpen) return;
    connection.close();
    const { random } = this.#world;
    if (random() < 0.5) connection.losesCommands = true; // else what is on its way is still carried out
    if (this.connection !== connection) return;
    this.#heardAt = -Infinity;
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
      // As in Redis: it was told between sending and now, and a late reply makes no clock worse.
      this.#aheadMs = Math.min(Math.max(this.#aheadMs, said.now - this.#world.time.now), said.now - sentAt);
      this.reliableAt = said.since + WINDOW_MS;
      this.#heardAt = sentAt;
    } catch (error) {
      if (error instanceof Refused) this.#heardAt = -Infinity;
    }
  }
}
