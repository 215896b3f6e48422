import { randomBytes } from 'node:crypto';
import { type Clock, msSince } from '../../../core/runtime.ts';
import type { Swapped } from '../../../store/backend.ts';
import type { AccountId, Period, WindowUse } from '../../../store/port.ts';
import type { SealedNext, SealedValue, Shelf } from '../../../store/sealed.ts';
import type { StoreAddress } from './address.ts';
import { connect, type Connection, FULL, troublesOf } from './client.ts';
import { type Argument, ID, PREFIX, run, SILENCE_MS, TOKEN, USED_BY } from './scripts.ts';
import { isReply, Trouble } from './troubles.ts';

const HELLO_MS = 1_000;
const FIRST_PAUSE_MS = 10;
const MOST_PAUSE_MS = 1_000;
/** How long a start waits for the store. */
const OPEN_MS = 1_000;

/**
 * The part of the memory from which on no copy is kept. It is less than that from which on no write begins (`FULL`): so copies
 * leave room for writes, and those that have begun can end. HELLO tells how much is used, since asking costs as much as a SWAP.
 */
const FULL_FOR_COPIES = 0.5;

interface ShelfOptions {
  readonly address: StoreAddress;
  readonly clock: Clock;
  /** A store that was replaced is not relied upon for so long. */
  readonly windowMs: number;
  /** Called after each command. */
  readonly onCommand: (command: string, outcome: 'good' | 'failed', ms: number) => void;
  /** What is wrong with the store, repeated for as long as it is. */
  readonly onTrouble: (trouble: Trouble) => void;
  readonly onChange: (isThere: boolean) => void;
}

/** Sealed values in Redis or Valkey. Nothing waits for a connection: without one that has answered a HELLO there is no store. */
export class RedisShelf implements Shelf {
  token = '';
  reliableAt = Infinity;
  readonly #tried = Promise.withResolvers<void>();
  /** Resolves after the first attempt to connect, or after a second. */
  readonly opened = this.#tried.promise;
  readonly #options: ShelfOptions;
  readonly #timers = new Set<() => void>();
  #connection: Connection | undefined;
  /** When the last HELLO was sent that its connection has answered, by both clocks: each may stand still or be set. */
  #heard = NEVER;
  /** The store's clock is so far ahead of this instance's. */
  #aheadMs = 0;
  #fullness = 0;
  #helloing: Promise<void> | undefined;
  #wasThere = true;
  #isClosed = false;

  constructor(options: ShelfOptions) {
    this.#options = options;
    this.#beat();
    this.#after(OPEN_MS, this.#tried.resolve);
    void this.#stayConnected();
  }

  get isThere(): boolean {
    const { clock } = this.#options;
    const { now, wall } = this.#heard;
    return this.#connection !== undefined && msSince(clock, now, wall) < SILENCE_MS;
  }

  now(): number {
    return this.#options.clock.now() + this.#aheadMs;
  }

  close(): void {
    this.#isClosed = true;
    this.#tried.resolve();
    for (const cancel of this.#timers) cancel();
    this.#connection?.client.disconnect();
  }

  async read(account: AccountId, names: readonly string[]) {
    const keys = names.map((name) => keyOf(account, name));
    const [token, ...values] = await this.#timed('read', this.#there().client.mgetBuffer(TOKEN, ...keys));
    if (String(token) !== this.token) return this.#isAnother();
    return { token: this.token, values };
  }

  async swap(account: AccountId, seen: string, { note, record, isBeginning }: SealedNext): Promise<Swapped> {
    const { client } = this.#there();
    if (isBeginning && this.#fullness >= FULL) return 'full';
    const keys = [ID, keyOf(account, note.name)];
    const args: Argument[] = [this.token, seen, bufferOf(note), lifeOf(note)];
    if (record) keys.push(keyOf(account, record.name));
    if (record?.value) args.push(bufferOf(record), lifeOf(record));
    const swapped = String(await this.#timed('swap', run(client, 'swap', keys, args)));
    return swapped === 'done' || swapped === 'other' ? swapped : this.#isAnother();
  }

  async keep(account: AccountId, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean> {
    const { client } = this.#there();
    const keys = [keyOf(account, note.name)];
    const args = [seen, bufferOf(note), lifeOf(note)];
    if (copy && this.#fullness < FULL_FOR_COPIES) {
      keys.push(keyOf(account, copy.name));
      args.push(bufferOf(copy), lifeOf(copy));
    }
    return (await this.#timed('keep', run(client, 'keep', keys, args))) === 1;
  }

  async count(account: AccountId, { name, lengthMs }: Period, many: number): Promise<WindowUse> {
    const { client } = this.#there();
    const now = this.now();
    const turn = Math.floor(now / lengthMs);
    const endsAt = (turn + 1) * lengthMs;
    const key = keyOf(account, `w:${name}:${turn}`);
    // It outlives its window, since the clocks of instances differ by less than the silence in which they are trusted.
    const lifeMs = Math.ceil(endsAt - now) + SILENCE_MS;
    const used = async () => {
      const replies = await client.pipeline().set(key, 0, 'PX', lifeMs, 'NX').incrby(key, many).exec();
      const [error, count] = replies?.[1] ?? [];
      if (error) throw error;
      return Number(count);
    };
    return { used: await this.#timed('count', used()), endsAt };
  }

  #beat(): void {
    this.#after(HELLO_MS, () => {
      this.#beat();
      this.#tell();
      void this.#hello();
    });
  }

  /** Closing the shelf cancels it. */
  #after(ms: number, act: () => void): void {
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(cancel);
      act();
    });
    this.#timers.add(cancel);
  }

  /** @throws Error at once where there is no store */
  #there(): Connection {
    if (!this.#connection || !this.isThere) throw new Error('there is no store');
    this.#connection.gather();
    return this.#connection;
  }

  /** @throws Error always */
  async #isAnother(): Promise<never> {
    await this.#hello();
    throw new Error('it is another store');
  }

  async #timed<T>(command: string, reply: Promise<T>): Promise<T> {
    const { clock, onCommand } = this.#options;
    const startedAt = clock.now();
    try {
      const replied = await reply;
      onCommand(command, 'good', clock.now() - startedAt);
      return replied;
    } catch (error) {
      onCommand(command, 'failed', clock.now() - startedAt);
      if (isReply(error)) this.#report(error);
      throw error;
    }
  }

  async #stayConnected(): Promise<void> {
    for (let failed = 0; !this.#isClosed;) {
      let isGood = false;
      try {
        const connection = await connect(this.#options.address, failed);
        this.#connection = connection;
        if (this.#isClosed) return this.close();
        await this.#hello();
        isGood = this.isThere;
        this.#tried.resolve();
        if (isGood) void this.#look(connection);
        await connection.closed;
        this.#report(connection.causeOf());
      } catch (error) {
        this.#report(error);
      }
      this.#connection = undefined;
      this.#heard = NEVER;
      this.#tried.resolve();
      this.#tell();
      failed = isGood ? 0 : failed + 1;
      const ms = Math.min(FIRST_PAUSE_MS * 2 ** failed, MOST_PAUSE_MS);
      if (!this.#isClosed) await new Promise<void>((resolve) => this.#after(ms, resolve));
    }
  }

  /** Says what is wrong with the settings of a node that was not used before. */
  async #look(connection: Connection): Promise<void> {
    for (const trouble of await troublesOf(connection)) if (trouble !== 'HIDDEN') this.#report(trouble);
  }

  /** Of an error, or of a code. */
  #report(cause: unknown): void {
    if (cause !== undefined && !this.#isClosed) this.#options.onTrouble(Trouble.of(cause));
  }

  /** HELLOs are sent one at a time: each would bring the token from before, and the store would make a new one for each. */
  #hello(): Promise<void> {
    return (this.#helloing ??= this.#sayHello().finally(() => (this.#helloing = undefined)));
  }

  async #sayHello(): Promise<void> {
    const { clock, windowMs } = this.#options;
    const connection = this.#connection;
    if (!connection) return;
    const sent = { now: clock.now(), wall: clock.wall() };
    const args = [this.token, randomBytes(9).toString('base64url')];
    try {
      const saying = run(connection.client, 'hello', [ID, TOKEN, USED_BY], args);
      const [token, since, now, fullness] = (await this.#timed('hello', saying)) as [Buffer, number, number, Buffer];
      this.reliableAt = since + windowMs;
      const isWaiting = this.token !== '' || this.reliableAt > now;
      if (this.token !== String(token) && isWaiting) this.#report('ANOTHER_STORE');
      this.token = String(token);
      // It was told between sending and now: what was known before stays, where that can be so.
      this.#aheadMs = Math.min(Math.max(this.#aheadMs, now - clock.now()), now + 1 - sent.now);
      this.#fullness = Number(fullness);
      if (this.#fullness >= FULL) this.#report('FULL');
      this.#heard = sent;
    } catch (error) {
      this.#heard = NEVER;
      this.#report(connection.causeOf(error));
      if (isReply(error)) connection.client.disconnect(); // it is refused: another connection may lead to the primary
    }
    this.#tell();
  }

  #tell(): void {
    const { isThere } = this;
    if (isThere === this.#wasThere || this.#isClosed) return;
    this.#wasThere = isThere;
    this.#options.onChange(isThere);
  }
}

const NEVER = { now: -Infinity, wall: -Infinity };

const keyOf = (account: AccountId, name: string) => `${PREFIX}${account}:${name}`;

const bufferOf = ({ value = new Uint8Array() }: { readonly value?: Uint8Array }) =>
  Buffer.from(value.buffer, value.byteOffset, value.byteLength);

const lifeOf = ({ lifeMs }: Pick<SealedValue, 'lifeMs'>) => Math.max(1, Math.ceil(lifeMs));
