import { randomBytes } from 'node:crypto';
import { type Clock, stopwatch } from '../../../core/runtime.ts';
import type { Changes, Numbered } from '../../../store/shared/changes.ts';
import type { Change, Engine, Question, Save, SaveReply, SnapshotReply } from '../../../store/shared/engine.ts';
import type { SessionState } from '../../../store/store.ts';
import { bytesOf, questionArgs, saveArgs, snapshotOf } from './wire.ts';
import type { WriteBegin, WriteBegun, WriteEnded } from '../../../store/writes.ts';
import { Channel } from './channel.ts';
import { channelOf, type StoreAddress } from './client.ts';
import { Connection, type Listeners, type ScriptCall } from './connection.ts';
import type { ScriptName } from './scripts.ts';
import { Shares } from './shares.ts';
import { Together } from './together.ts';

interface RedisEngineOptions extends Pick<Listeners, 'onTrouble'> {
  readonly connection: Pick<Connection, 'run' | 'isOpen' | 'close'>;
  readonly shares: Shares;
  /** On which changes are published; empty where they are not. */
  readonly channelName: string;
  /** Absent where each read asks. */
  readonly channel?: Channel | undefined;
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

/** The call of the engine as it is sent in JSON, the keys that its script names, and its copy or record. */
interface Asked {
  readonly call: object;
  readonly keys: readonly string[];
  readonly value?: Uint8Array | undefined;
}

interface Replied {
  readonly numbered: Numbered;
  readonly reply: readonly unknown[];
}

/** The calls whose reply is JSON, values aside. */
type Call = 'beginWrite' | 'endWrite' | 'change';

type ReplyTo<Name extends Call> = Awaited<ReturnType<Engine[Name]>>;

/** In a cluster: few enough to ask all at once, enough to spread evenly. */
const SHARES = 1_024;
/** Longer than other instances take to connect again. */
const SETTLING_MS = 1_000;
/**
 * Where there are replicas, a primary that was silent for so long may have been replaced, and still answers what has waited in
 * its socket: longer than it takes until it hears of it, or misses its replicas (`min-replicas-max-lag` of 2 s).
 */
const SILENCE_MS = 5_000;
/** How soon shares that did not answer are asked again. */
const AGAIN_MS = 500;

const nameOf = (share: number, key: string) => `portico:{${share}}:${key}`;

const machine: Pick<Clock, 'now' | 'wall'> = { now: () => performance.now(), wall: () => Date.now() };

/** Of the versions that a script makes. */
const seed = () => randomBytes(9).toString('base64url');

/** The engine on Redis or Valkey. Each account belongs to a share; the keys of a share are on one node. */
export class RedisEngine implements Engine {
  readonly #options: RedisEngineOptions;
  readonly #again: NodeJS.Timeout;
  readonly #toAsk = new Set<number>();
  #isAsking = false;
  #isClosed = false;
  #wasThere = true;
  #settledAt = 0;
  /** Since the last answer. */
  #silence = stopwatch(machine);
  /** After a silence no write is begun before, and others may know more of sessions. */
  #reliedOnAt = 0;
  #hasReplicas = false;
  #onAnother: (() => void) | undefined;
  readonly #saving = new Together((account: string, saves: readonly Save[]) => this.#saveAll(account, saves));

  constructor(options: RedisEngineOptions) {
    this.#options = options;
    this.#again = setInterval(() => this.#askAgain(), AGAIN_MS).unref();
  }

  /** Once the first attempt to connect is over, successful or not. */
  static async open(options: OpenOptions): Promise<RedisEngine> {
    const { engine, opened } = RedisEngine.opening(options);
    await opened;
    return engine;
  }

  /** `opened` resolves after the first attempt to connect, successful or not. */
  static opening({ address, settlingMs = SETTLING_MS, ...options }: OpenOptions) {
    const onReady = () => void engine.askIds();
    const connection = new Connection({ address, onReady, onLost: () => engine.#lost(), ...options });
    const shares = new Shares(address.kind === 'cluster' ? SHARES : 1);
    const beat = async () => void (connection.isOpen && (await engine.#hello([0])));
    const onRefused = () => options.onTrouble('NO_CHANNEL');
    const onLost = () => void connection.mayPublish().then((may) => may || onRefused());
    const channel = address.kind === 'cluster' ? undefined : new Channel({ address, beat, onRefused, onLost });
    const engine = new RedisEngine({
      connection,
      shares,
      settlingMs,
      channel,
      channelName: channelOf(address),
      ...options,
    });
    return { engine, opened: connection.open() };
  }

  get changes(): Changes | undefined {
    return this.#options.channel?.changes;
  }

  get isThere(): boolean {
    return this.#options.shares.failing.size === 0;
  }

  /** 1 while the store answers; in a cluster the part that does. */
  get up(): number {
    const { failing, all } = this.#options.shares;
    return 1 - failing.size / all.length;
  }

  async snapshot(account: string, question: Question): Promise<SnapshotReply> {
    const { shares } = this.#options;
    const keys = [`l:${account}`, `w:${account}`, ...question.keys.map(({ key }) => `c:${account}:${key}`)];
    const { reply, numbered } = await this.#askFor('snapshot', account, { keys, args: questionArgs(question) });
    const now = performance.now();
    const isDoubted = shares.isDoubted(shares.of(account)) || now < this.#settledAt;
    const read = snapshotOf(question, reply);
    // Who is over is over; who is not may be, as another primary knows.
    const session = now < this.#reliedOnAt && read.session ? { ...read.session, isLocal: true } : read.session;
    return { ...read, session, keys: isDoubted ? read.keys.map(() => undefined) : read.keys, numbered };
  }

  save(account: string, save: Save): Promise<SaveReply> {
    return this.#saving.add(account, save);
  }

  async beginWrite(account: string, write: WriteBegin): Promise<WriteBegun> {
    const asked = askedOf(account, write, [`w:${account}`]);
    const { reply, values, numbered } = await this.#askOf('beginWrite', account, asked);
    this.changes?.changed(account, numbered);
    this.#assertReliable();
    return reply.is === 'record' ? { ...reply, value: values[0] ?? Buffer.alloc(0) } : reply;
  }

  async endWrite(account: string, write: WriteEnded): Promise<void> {
    const { numbered } = await this.#askOf('endWrite', account, askedOf(account, write));
    this.changes?.changed(account, numbered);
  }

  async change(account: string, change: Change): Promise<void> {
    const { numbered } = await this.#askOf('change', account, { keys: [`l:${account}`], call: change });
    if (!change.revoked) return;
    this.changes?.changed(account, numbered);
    this.#assertReliable();
  }

  /** It tells nothing of the store itself: whether that is there, or another one. */
  async session(account: string, id: string): Promise<SessionState> {
    const { connection, shares } = this.#options;
    const keys = [nameOf(shares.of(account), `a:${account}`)];
    return JSON.parse(String(await connection.run('session', { keys, args: [id] }))) as SessionState;
  }

  onAnother(listener: () => void): void {
    this.#onAnother = listener;
  }

  /** Asks for the ids of all shares, and sends the ones known here; then for those that have become doubtful by that. */
  askIds(): Promise<void> {
    const { shares, settlingMs } = this.#options;
    if (!this.isThere) this.#settledAt = performance.now() + settlingMs;
    return this.#hello(shares.all);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#again);
    this.#options.connection.close();
    this.#options.channel?.close();
  }

  async #hello(shares: Iterable<number>): Promise<void> {
    for (const share of shares) this.#toAsk.add(share);
    if (this.#isAsking) return;
    this.#isAsking = true;
    while (this.#toAsk.size > 0 && !this.#isClosed) {
      const asked = [...this.#toAsk];
      this.#toAsk.clear();
      await Promise.allSettled(asked.map((share) => this.#ask('hello', share)));
    }
    this.#isAsking = false;
  }

  #askAgain(): void {
    const { connection, shares } = this.#options;
    if (!connection.isOpen) return;
    for (const share of shares.failing) this.#ask('hello', share).catch(() => undefined);
  }

  /** There is no connection. */
  #lost(): void {
    const { shares } = this.#options;
    for (const share of shares.all) shares.failing.add(share);
    this.changes?.forget('away');
    this.#tellChange();
  }

  #tellChange(): void {
    const { isThere } = this;
    if (this.#isClosed || isThere === this.#wasThere) return;
    this.#wasThere = isThere;
    this.#options.onChange(isThere);
  }

  async #saveAll(account: string, saves: readonly Save[]): Promise<readonly SaveReply[]> {
    const keys = [`l:${account}`, `h:${account}`, ...saves.map(({ key }) => `c:${account}:${key}`)];
    const { reply, numbered } = await this.#askFor('save', account, { keys, args: saveArgs(saves) });
    if (saves.some(({ drop }) => drop)) this.changes?.changed(account, numbered);
    const isDoubted = performance.now() < this.#settledAt;
    return reply.map((result) => (isDoubted ? 'void' : (String(result) as SaveReply)));
  }

  #askFor(name: ScriptName, account: string, { keys, args }: ScriptCall): Promise<Replied> {
    return this.#ask(name, this.#options.shares.of(account), { keys: [`a:${account}`, ...keys], args });
  }

  async #askOf<Name extends Call>(name: Name, account: string, { call, keys, value }: Asked) {
    const args = [JSON.stringify(call), ...(value ? [bytesOf(value)] : [])];
    const { reply, numbered } = await this.#askFor(name, account, { keys, args });
    const [json, ...values] = reply;
    return { reply: JSON.parse(String(json)) as ReplyTo<Name>, values: values as (Buffer | null)[], numbered };
  }

  #assertReliable(): void {
    if (performance.now() < this.#reliedOnAt) throw new Error('the store was silent for long and may be another one');
  }

  #noteAnswer(): void {
    if (this.#hasReplicas && this.#silence() >= SILENCE_MS) {
      this.#settledAt = this.#reliedOnAt = performance.now() + SILENCE_MS;
      this.changes?.forget('away');
    }
    this.#silence = stopwatch(machine);
  }

  /** Sends the id of the share that was seen last, and learns the one in the reply. */
  async #ask(name: ScriptName, share: number, { keys, args }: ScriptCall = { keys: [], args: [] }): Promise<Replied> {
    const { connection, shares, channel, channelName, windowMs } = this.#options;
    const askedAt = performance.now();
    const sent = channel?.sent();
    const { token, agoMs } = shares.idOf(share, askedAt);
    const named = ['id', ...keys].map((key) => nameOf(share, key));
    try {
      const call = { keys: named, args: [seed(), token, agoMs, windowMs, channelName, ...args] };
      const [id, number, ...reply] = (await connection.run(name, call)) as [Buffer, number, ...unknown[]];
      this.#noteAnswer();
      const numbered = { token: String(id), number };
      if (sent) channel?.answered(numbered, sent);
      const doubted = shares.learn(share, numbered.token, askedAt);
      if (doubted.length > 0) void this.#hello(doubted);
      if (token !== '' && token !== numbered.token) {
        this.#options.onTrouble('ANOTHER_STORE');
        this.#onAnother?.();
      }
      if (name === 'hello') this.#hasReplicas = reply[0] === 1;
      return { numbered, reply };
    } catch (error) {
      shares.missed(share);
      throw error;
    } finally {
      this.#tellChange();
    }
  }
}

function askedOf(account: string, { record, ...call }: WriteBegin | WriteEnded, more: readonly string[] = []): Asked {
  const keys = [
    `g:${account}:${call.nonce}`,
    `h:${account}`,
    ...more,
    ...(record ? [`r:${account}:${record.key}`] : []),
  ];
  return { keys, call: { ...call, record: record && { lifeMs: record.lifeMs } }, value: record?.value };
}
