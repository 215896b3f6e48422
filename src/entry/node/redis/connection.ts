import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { SCRIPTS, type ScriptName } from './scripts.ts';

type Argument = string | number | Buffer;

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
}

export type Watch = (command: ScriptName, outcome: 'good' | 'failed', ms: number) => void;

interface ConnectionOptions {
  readonly url: string;
  /** Told once of each time that the engine is lost or there again. */
  readonly onChange: (isThere: boolean) => void;
  /** What is wrong, in a word. */
  readonly onTrouble: (reason: string) => void;
}

const COMMAND_MS = 100;
const FIRST_MS = 1_000;
/** An engine that says nothing for so long is dropped and looked for again. */
const SILENCE_MS = 2_000;
const MOST_RECONNECT_MS = 500;

const shas = Object.fromEntries(
  Object.entries(SCRIPTS).map(([name, lua]) => [name, createHash('sha1').update(lua).digest('hex')]),
) as Record<ScriptName, string>;

/**
 * One connection to Redis or Valkey that fails fast: nothing waits for a connection, nothing is sent twice, no reply is
 * waited for longer than 100 ms.
 */
export class Connection {
  readonly #redis: Redis;
  readonly #onChange: (isThere: boolean) => void;
  readonly #onTrouble: (reason: string) => void;
  /** Told of each command, and how long its reply took. */
  watch: Watch = () => undefined;
  /** Whether somebody has looked whose store this connection leads to; with a new one that has to be asked again. */
  isKnown = false;
  #isThere = true;

  constructor({ url, onChange, onTrouble }: ConnectionOptions) {
    this.#onChange = onChange;
    this.#onTrouble = onTrouble;
    this.#redis = new Redis(url, {
      protocol: 2,
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: 1_000,
      socketTimeout: SILENCE_MS,
      reconnectOnError: (error) => error.message.startsWith('READONLY'), // after a failover, to the one that is it now
      retryStrategy: (times) => Math.min(50 * times, MOST_RECONNECT_MS),
    });
    this.#redis.on('error', (error) => {
      onTrouble(reasonOf(error));
      this.#is(false); // each command fails with its own error
    });
    // A script that is not known would be sent twice, the second time perhaps to nobody.
    this.#redis.on('ready', () => {
      for (const lua of Object.values(SCRIPTS)) this.#redis.script('LOAD', lua).catch(() => undefined);
    });
    this.#redis.on('close', () => {
      this.isKnown = false;
      this.#is(false);
    });
  }

  /** Whether the last that was heard of the engine is an answer. */
  get isThere(): boolean {
    return this.#isThere;
  }

  /** Whether there is a connection at all. */
  get isOpen(): boolean {
    return this.#redis.status === 'ready';
  }

  onReady(run: () => void): void {
    this.#redis.on('ready', run);
  }

  /** Comes out after the first attempt, or when that takes long; all else goes on behind it. */
  async open(): Promise<void> {
    await within(FIRST_MS, this.#redis.connect()).catch(() => undefined);
  }

  /** Runs a script. @throws where no reply comes in time */
  async run(name: ScriptName, call: Call): Promise<unknown> {
    const begunAt = performance.now();
    try {
      const reply = await within(COMMAND_MS, this.#evaluate(name, call));
      this.#is(true);
      this.watch(name, 'good', performance.now() - begunAt);
      return reply;
    } catch (error) {
      if (isReply(error)) this.#onTrouble(reasonOf(error));
      if (!isReply(error) || name === 'beat') this.#is(false); // who may not beat may not be relied upon
      this.watch(name, 'failed', performance.now() - begunAt);
      throw error;
    }
  }

  /** By its hash, and by its text where the engine does not know it. */
  async #evaluate(name: ScriptName, { keys, args }: Call): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return await this.#redis.callBuffer('EVALSHA', [shas[name], ...rest]);
    } catch (error) {
      if (!isReply(error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#redis.callBuffer('EVAL', [SCRIPTS[name], ...rest]);
    }
  }

  close(): void {
    this.#redis.disconnect();
  }

  #is(isThere: boolean): void {
    if (isThere === this.#isThere) return;
    this.#isThere = isThere;
    this.#onChange(isThere);
  }
}

/** A code of the system's, or the word with which the engine's own complaint begins; nothing that could be a secret. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  const word = error instanceof Error ? /^(?:ERR )?([A-Z_]{3,40})\b/.exec(error.message)?.[1] : undefined;
  const isSilence = error instanceof Error && error.message.startsWith('Socket timeout');
  return code ?? word ?? (isSilence ? 'ETIMEDOUT' : 'UNKNOWN');
}

/** The engine's own words for why it does not. */
const isReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError';

/**
 * Looks once more after the time is up: after a stall of the event loop replies lie in the socket while the timers run.
 * ioredis' own `commandTimeout` takes those for missing.
 */
function within<T>(ms: number, reply: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error(`nothing in ${ms} ms`))), ms);
    reply.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
