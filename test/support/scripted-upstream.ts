import { createServer, type Server, type Socket } from 'node:net';
import { listenLocally } from './ports.ts';
import { isMalformed, matcher, takeCalls, type Call, type Match } from './calls.ts';
import { reset, type Step } from './steps.ts';

export * from './barrier.ts';
export * from './steps.ts';
export type { Call, Match } from './calls.ts';

interface Script {
  readonly matches: (call: Call) => boolean;
  readonly replies: Step[];
  readonly repeats: boolean;
}

/**
 * An upstream that does byte for byte what a test says, on a real socket, and counts. It never sleeps: what has to
 * happen in order is ordered by barriers. A call that nothing was scripted for, or that is no well-formed request, is
 * kept in `unexpected` and its connection reset.
 */
export class ScriptedUpstream {
  readonly calls: Call[] = [];
  readonly unexpected: Call[] = [];
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #gone: Promise<void>[] = [];
  #scripts: readonly Script[] = [];
  #watchers: readonly (() => void)[] = [];

  /** Stays what it was after `close`. */
  url = '';

  constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  async listen(): Promise<void> {
    this.url = `http://127.0.0.1:${await listenLocally(this.#server)}`;
  }

  /** Each call takes the next reply, the last one repeats. Of several scripts that match, the newest counts. */
  on(match: Match, ...replies: Step[]): this {
    return this.#add({ matches: matcher(match), replies, repeats: true });
  }

  /** Like `on`, but each reply serves one call; after the last, older scripts count again. */
  once(match: Match, ...replies: Step[]): this {
    return this.#add({ matches: matcher(match), replies, repeats: false });
  }

  /** Connections accepted so far, open or not. */
  connections(): number {
    return this.#gone.length;
  }

  callsTo(match: Match): readonly Call[] {
    return this.calls.filter(matcher(match));
  }

  /** The first `n` calls (that match), as soon as there are so many, those before now included. */
  waitForCalls(n: number, match: Match = () => true): Promise<readonly Call[]> {
    return new Promise((resolve) => {
      const look = () => {
        const found = this.callsTo(match);
        if (found.length >= n) resolve(found.slice(0, n));
      };
      this.#watchers = [...this.#watchers, look];
      look();
    });
  }

  /** Resolves when the connection of that call is closed: the gateway has given it up, or a step closed it. */
  disconnected(call: Call): Promise<void> {
    return this.#gone[call.socket - 1] ?? Promise.reject(new Error('not a call of this upstream'));
  }

  assertNoUnexpected(): void {
    const list = this.unexpected.map(({ method, path }) => `${method} ${path}`);
    if (list.length > 0) throw new Error(`calls that nothing was scripted for: ${list.join(', ')}`);
  }

  /** Closes everything; from then on connections to `url` are refused. */
  close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    return new Promise((resolve) => void this.#server.close(() => resolve()));
  }

  #add(script: Script): this {
    this.#scripts = [script, ...this.#scripts];
    return this;
  }

  #accept(socket: Socket): void {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const id = this.#gone.push(gone);
    this.#open.add(socket);
    socket.on('error', () => {}); // A reset by the other side; 'close' follows.
    socket.on('close', () => {
      this.#open.delete(socket);
      resolve();
    });
    let pending: Buffer = Buffer.alloc(0);
    // Pipelined calls are answered in order, as HTTP/1.1 demands.
    let answered = Promise.resolve();
    socket.on('data', (chunk: Buffer) => {
      const { calls, rest } = takeCalls(Buffer.concat([pending, chunk]), id);
      pending = rest;
      for (const call of calls) {
        const reply = this.#receive(call);
        answered = answered.then(() => reply({ call, socket, gone }));
      }
    });
  }

  /** Counts the call and decides its answer at once, so that replies go out in the order of arrival. */
  #receive(call: Call): Step {
    const reply = isMalformed(call) ? undefined : this.#nextReply(call);
    this.calls.push(call);
    if (!reply) this.unexpected.push(call);
    for (const look of this.#watchers) look();
    return reply ?? reset();
  }

  #nextReply(call: Call): Step | undefined {
    const script = this.#scripts.find(({ matches, replies }) => replies.length > 0 && matches(call));
    const stays = script?.repeats && script.replies.length === 1;
    return stays ? script.replies[0] : script?.replies.shift();
  }
}

export const startUpstream = async (): Promise<ScriptedUpstream> => {
  const upstream = new ScriptedUpstream();
  await upstream.listen();
  return upstream;
};
