import { randomBytes } from 'node:crypto';
import {
  type Change,
  type Engine,
  type KeyQuestion,
  type Question,
  type Save,
  type SaveReply,
  type SessionReply,
  type WriteBegin,
  type WriteBegun,
  type WriteEnded,
} from '../../../store/shared/engine.ts';
import type { OpenState, Window } from '../../../store/store.ts';
import type { StoreAddress } from '../../../core/store-address.ts';
import { type ScriptCall, Connection, type Listeners } from './connection.ts';
import type { ScriptName } from './scripts.ts';
import { Shares } from './shares.ts';

interface RedisEngineOptions extends Pick<Listeners, 'onTrouble'> {
  readonly connection: Pick<Connection, 'run' | 'isOpen' | 'close'>;
  readonly shares: Shares;
  /** How long the store is not relied on after it was replaced. */
  readonly windowMs: number;
  /** How long no copy is used after a lost connection: others may have found another store meanwhile, and report it. */
  readonly settlingMs: number;
  /** Called when `isThere` changes: whether the last question to every share was answered. */
  readonly onChange: (isThere: boolean) => void;
}

interface OpenOptions extends Listeners, Pick<RedisEngineOptions, 'windowMs' | 'onChange'> {
  readonly address: StoreAddress;
  readonly settlingMs?: number;
}

/** In a cluster: few enough to ask all at once, enough to spread evenly. */
const SHARES = 1_024;
/** Longer than other instances take to connect again. */
const SETTLING_MS = 1_000;

type Argument = ScriptCall['args'][number];

/** How soon shares that did not answer are asked again. */
const AGAIN_MS = 500;

const text = (value: unknown) => String(value);
const yes = (is: unknown) => (is ? 1 : 0);
const ms = (value: number | undefined) => Math.ceil(value ?? 0);
const bytes = (value: Uint8Array) => Buffer.from(value.buffer, value.byteOffset, value.byteLength);

const nameOf = (share: number, key: string) => `portico:{${share}}:${key}`;

/** Of the versions that a script makes. */
const seed = () => randomBytes(9).toString('base64url');

/** The engine on Redis or Valkey. Each account belongs to a share; the keys of a share are on one node. */
export class RedisEngine implements Engine {
  readonly #options: RedisEngineOptions;
  /** Shares whose last question was not answered. */
  readonly #failing = new Set<number>();
  #isAsking = false;
  #toAsk: 'all' | 'doubted' | undefined;
  #isClosed = false;
  #settledAt = 0;
  #onAnother: (() => void) | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(options: RedisEngineOptions) {
    this.#options = options;
  }

  /** Resolves after the first attempt to connect, successful or not. */
  static async open({ address, settlingMs = SETTLING_MS, ...options }: OpenOptions): Promise<RedisEngine> {
    const onReady = () => void engine.askIds();
    const connection = new Connection({ address, onReady, onLost: () => engine.#lost(), ...options });
    const shares = new Shares(address.kind === 'cluster' ? SHARES : 1);
    const engine = new RedisEngine({ connection, shares, settlingMs, ...options });
    await connection.open();
    return engine;
  }

  get isThere(): boolean {
    return this.#failing.size === 0;
  }

  /** 1 while the store answers; in a cluster the part that does. */
  get up(): number {
    return 1 - this.#failing.size / this.#options.shares.count;
  }

  async snapshot(account: string, { window, budget, session = '', sessionEpoch = 0, keys }: Question) {
    const { shares } = this.#options;
    const ofBudget = [budget?.name ?? '', ms(budget?.lengthMs)];
    const args = [...windowArgs(window), ...ofBudget, session, sessionEpoch, ...keys.flatMap(questionArgs)];
    const named = [`l:${account}`, ...keys.map(({ key }) => `c:${account}:${key}`)];
    const reply = await this.#askOf('snapshot', account, { keys: named, args });
    const [now, used, leftMs, budgetUsed, budgetLeftMs, cooldownMs, isRevoked, epoch, ...rows] = reply as number[];
    const isDoubted = shares.isDoubted(shares.of(account)) || performance.now() < this.#settledAt;
    return {
      now: Number(now),
      use: window && Number(used) >= 0 ? useOf(used, leftMs) : undefined,
      budget: budget && useOf(budgetUsed, budgetLeftMs),
      cooldownMs: Number(cooldownMs),
      session: session === '' ? undefined : { isRevoked: isRevoked === 1, epoch: Number(epoch) },
      keys: rows.map((row: unknown) => (row === null || isDoubted ? undefined : keyReplyOf(row as KeyRow))),
    };
  }

  async save(account: string, { key, tags, version, askedAt, lease, copy, drop }: Save) {
    const ofCopy = [yes(copy), copy ? bytes(copy.value) : '', ms(copy?.freshMs), Math.max(1, ms(copy?.lifeMs))];
    const args = [version, ms(askedAt), lease ?? '', drop ?? '', ...ofCopy, ...tags];
    const [saved] = await this.#askOf('save', account, {
      keys: [`l:${account}`, `h:${account}`, `c:${account}:${key}`],
      args,
    });
    return text(saved) as SaveReply;
  }

  async beginWrite(account: string, write: WriteBegin): Promise<WriteBegun> {
    const { nonce, window, tags, busyMs, markMs, record, purchase = '', session } = write;
    const ofRecord = [record ? bytes(record.value) : '', ms(record?.lifeMs)];
    const ofSession = [session?.id ?? '', session?.epoch ?? 0];
    const args = [...windowArgs(window), nonce, ms(busyMs), ms(markMs), purchase, ...ofRecord, ...ofSession, ...tags];
    const keys = [`g:${account}:${nonce}`, `h:${account}`, ...(record ? [`r:${account}:${record.key}`] : [])];
    const [used, leftMs, is, ...more] = await this.#askOf('beginWrite', account, { keys, args });
    return { ...(window && { use: useOf(used, leftMs) }), ...begunOf(text(is), more) };
  }

  async endWrite(account: string, write: WriteEnded): Promise<void> {
    const { nonce, end, markMs, tags, purchase = '', record, dropEverything } = write;
    const ofRecord = [yes(record?.value), record?.value ? bytes(record.value) : '', ms(record?.lifeMs)];
    const args = [nonce, end, ms(markMs), purchase, yes(dropEverything), ...ofRecord, ...tags];
    const keys = [`g:${account}:${nonce}`, `h:${account}`, ...(record ? [`r:${account}:${record.key}`] : [])];
    await this.#askOf('endWrite', account, { keys, args });
  }

  async change(account: string, { cooldownMs, spent, renewed, revoked }: Change): Promise<void> {
    const ofLease = [renewed?.key ?? '', renewed?.lease ?? ''];
    const ofSession = [revoked?.id ?? '', revoked?.epoch ?? 0, ms(revoked?.lifeMs)];
    const args = [ms(cooldownMs), spent?.name ?? '', ms(spent?.lengthMs), ...ofLease, ...ofSession];
    await this.#askOf('change', account, { keys: [`l:${account}`], args });
  }

  /** It tells nothing of the store itself: whether that is there, or another one. */
  async session(account: string, id: string): Promise<SessionReply> {
    const { connection, shares } = this.#options;
    const keys = [nameOf(shares.of(account), `a:${account}`)];
    const [isRevoked, epoch] = (await connection.run('session', { keys, args: [id] })) as number[];
    return { isRevoked: isRevoked === 1, epoch: Number(epoch) };
  }

  onAnother(listener: () => void): void {
    this.#onAnother = listener;
  }

  /** Asks for the ids of shares, and sends the ones known here; then for those that have become doubtful by that. */
  async askIds(which: 'all' | 'doubted' = 'all'): Promise<void> {
    if (which === 'all' && !this.isThere) this.#settledAt = performance.now() + this.#options.settlingMs;
    if (this.#toAsk !== 'all') this.#toAsk = which;
    if (this.#isAsking) return;
    this.#isAsking = true;
    while (this.#toAsk && !this.#isClosed) {
      const { shares } = this.#options;
      const asked = this.#toAsk === 'all' ? Array.from({ length: shares.count }, (_, i) => i) : shares.doubted();
      this.#toAsk = undefined;
      await Promise.all(asked.map((share) => this.#hello(share)));
    }
    this.#isAsking = false;
  }

  /** There is no connection. */
  #lost(): void {
    for (let share = 0; share < this.#options.shares.count; share++) this.#note(share, false);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#again);
    this.#options.connection.close();
  }

  async #hello(share: number): Promise<void> {
    await this.#ask('hello', share, { keys: [], args: [] }).catch(() => this.#options.shares.missed(share));
  }

  #askOf(name: ScriptName, account: string, { keys, args }: ScriptCall): Promise<unknown[]> {
    return this.#ask(name, this.#options.shares.of(account), { keys: [`a:${account}`, ...keys], args });
  }

  async #ask(name: ScriptName, share: number, { keys, args }: ScriptCall): Promise<unknown[]> {
    const { connection, shares, windowMs } = this.#options;
    const askedAt = performance.now();
    const { token, agoMs } = shares.idOf(share, askedAt);
    const head: Argument[] = [seed(), token, agoMs, windowMs];
    const named = ['id', ...keys].map((key) => nameOf(share, key));
    try {
      const [id, ...reply] = (await connection.run(name, { keys: named, args: [...head, ...args] })) as unknown[];
      this.#note(share, true);
      if (token !== '' && token !== text(id)) this.#noteAnother();
      if (shares.learn(share, text(id), askedAt)) void this.askIds('doubted');
      return reply;
    } catch (error) {
      this.#note(share, false);
      throw error;
    }
  }

  #noteAnother(): void {
    this.#options.onTrouble('ANOTHER_STORE');
    this.#onAnother?.();
  }

  #note(share: number, isAnswer: boolean): void {
    if (this.#isClosed) return;
    const before = this.isThere;
    if (isAnswer) this.#failing.delete(share);
    else this.#failing.add(share);
    if (this.isThere !== before) this.#options.onChange(this.isThere);
    if (!this.isThere) this.#waitToAsk();
  }

  #waitToAsk(): void {
    this.#again ??= setTimeout(() => this.#askAgain(), AGAIN_MS).unref();
  }

  #askAgain(): void {
    this.#again = undefined;
    if (this.isThere) return;
    this.#waitToAsk();
    if (this.#options.connection.isOpen) for (const share of this.#failing) void this.#hello(share);
  }
}

const useOf = (used: unknown, leftMs: unknown) => ({ used: Number(used), leftMs: Number(leftMs) });

const windowArgs = (window: Window | undefined): Argument[] => [
  window?.name ?? '',
  ms(window?.lengthMs),
  window?.limit ?? 0,
];

const questionArgs = ({ tags, have, lease = '', waitedFor = '' }: KeyQuestion): Argument[] => [
  have?.version ?? '',
  have?.askedAt ?? 0,
  yes(have?.isFresh),
  lease,
  waitedFor,
  tags.length,
  ...tags,
];

type KeyRow = readonly [version: Buffer, askedAt: number, ageMs: number, value: Buffer | null, lease: Buffer | null];

const keyReplyOf = ([version, askedAt, ageMs, value, lease]: KeyRow) => ({
  version: text(version),
  ...(askedAt >= 0 && { copy: { askedAt, ageMs, ...(value && { value }) } }),
  ...(lease && { lease: text(lease) }),
});

function begunOf(is: string, [first, second]: unknown[]): WriteBegun {
  if (is === 'cooldown') return { is, cooldownMs: Number(first) };
  if (is === 'another_store') return { is, leftMs: Number(first) };
  if (is === 'equal') return { is, standing: text(first) as OpenState };
  if (is === 'record') return { is, value: first as Buffer, isOver: second === 1 };
  return { is: is as 'begun' | 'over' | 'limit' | 'full' | 'revoked' };
}
