import type { RedisNode } from './redis-node.ts';
import type { SimulatedProcess } from './time.ts';
import { MAX_OWED_MS } from './times.ts';
import type { World } from './world.ts';

/** The node does not take it: it is a replica, or a primary without its replicas. */
export class Refused extends Error {}

export interface Command<T> {
  /** Whether a node that refuses what writes refuses it. */
  readonly writes: boolean;
  run(node: RedisNode): T;
}

/** A connection of a client to a node. Commands and replies keep their order, may be late, and may be lost. */
export class Connection {
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
    const { time, delay, without } = this.#world;
    const { node } = this;
    if (time.now < node.stoppedUntil) {
      time.at(node.stoppedUntil, () => this.#arrive(command, reply));
      return;
    }
    const isRefused = command.writes && node.refuses && !without.has('refusal');
    const value = isRefused ? undefined : { is: command.run(node) };
    this.repliesFrom = Math.max(this.repliesFrom, time.now + delay());
    time.at(this.repliesFrom, () =>
      reply.settle(() => (value ? reply.resolve(value.is) : reply.reject(new Refused('the node refuses it')))),
    );
  }
}
