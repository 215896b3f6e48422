import { randomUUID } from 'node:crypto';
import {
  type KnownRecord,
  MAX_TAGS,
  type NewCopy,
  type NewRecord,
  type NewTurn,
  type PlaceReply,
  type Question,
  type Remote,
  type Reply,
  type Stage,
} from '../../../store/shared/remote.ts';
import type { Connection } from './connection.ts';
import { LIFE_KEY, type RollCall } from './roll-call.ts';

/** Versions of an account that holds nothing; a read that takes longer is not kept. With copies they live as long as those. */
const VERSIONS_MS = 120_000;

const of = (kind: string, account: string) => `portico:${kind}:${account}`;

/** The engine's side of the shared store, on Redis or Valkey. */
export class RedisRemote implements Remote {
  readonly #connection: Connection;
  readonly #rollCall: RollCall;

  constructor(connection: Connection, rollCall: RollCall) {
    this.#connection = connection;
    this.#rollCall = rollCall;
  }

  state(): 'there' | 'silent' | 'gone' {
    const { isOpen, isKnown, isThere } = this.#connection;
    if (!isOpen || !isKnown) return 'gone';
    return isThere ? 'there' : 'silent';
  }

  isWhole(): boolean {
    return this.#rollCall.isWhole;
  }

  async visit(account: string, { places, window }: Question): Promise<Reply> {
    this.#assertThere();
    const keys = [
      of('versions', account),
      LIFE_KEY,
      of('hold', account),
      of('window', `${account}:${window?.name.replaceAll(' ', '-') ?? ''}`),
      ...places.map(({ key }) => of('copy', `${account}:${key}`)),
    ];
    const args = places.flatMap(({ tags, have }) => [have?.versions ?? '', have?.askedAt ?? '', tags.length, ...tags]);
    const head = [randomUUID(), VERSIONS_MS, window?.lengthMs ?? 0];
    const reply = (await this.#connection.run('visit', { keys, args: [...head, ...args] })) as [
      number,
      number,
      number,
      ...(Buffer | number)[],
    ];
    const [used, leftMs, heldMs, ...rest] = reply;
    return { use: window && { used, leftMs }, heldMs, places: places.map((_, i) => placeReply(rest.slice(4 * i))) };
  }

  async save(account: string, { key, tags, versions, askedAt, value, lifeMs }: NewCopy): Promise<boolean> {
    this.#assertThere();
    if (this.#rollCall.isStoreFilling) return false;
    const keys = [of('versions', account), LIFE_KEY, of('copy', `${account}:${key}`)];
    const args = [versions, askedAt, bufferOf(value), lifeMs, ...tags];
    return (await this.#connection.run('save', { keys, args })) === 1;
  }

  async touch(account: string, tags: readonly string[]): Promise<void> {
    await this.#connection.run('touch', {
      keys: [of('versions', account)],
      args: [randomUUID(), MAX_TAGS, ...tags],
    });
  }

  async takeTurn(account: string, { key, versions, instance, lifeMs }: NewTurn): Promise<boolean> {
    this.#assertThere();
    const keys = [of('turn', `${account}:${key}`)];
    return (await this.#connection.run('takeTurn', { keys, args: [versions, instance, lifeMs] })) === 1;
  }

  async passTurn(account: string, { key, instance }: Pick<NewTurn, 'key' | 'instance'>): Promise<void> {
    this.#assertThere();
    await this.#connection.run('passTurn', { keys: [of('turn', `${account}:${key}`)], args: [instance] });
  }

  async hold(account: string, ms: number): Promise<void> {
    await this.#connection.run('hold', { keys: [of('hold', account)], args: [ms] });
  }

  async claim(account: string, record: NewRecord): Promise<KnownRecord | undefined> {
    const life = await this.#rollCall.complete();
    const keys = [recordKey(account, record.key), LIFE_KEY];
    const reply = (await this.#connection.run('claim', { keys, args: [...argsOf(record), life] })) as [
      Buffer,
      Buffer,
      number,
    ];
    const [state, value, ageMs] = reply;
    if (String(state) === 'free') return undefined;
    if (String(state) !== 'reborn') return { stage: String(state) as Stage, value, ageMs };
    this.#rollCall.lookAgain();
    return this.claim(account, record);
  }

  async advance(account: string, record: NewRecord): Promise<boolean> {
    const keys = [recordKey(account, record.key)];
    return (await this.#connection.run('advance', { keys, args: argsOf(record) })) === 1;
  }

  async settle(account: string, record: NewRecord): Promise<void> {
    await this.#connection.run('settle', { keys: [recordKey(account, record.key)], args: argsOf(record) });
  }

  async release(account: string, { key, nonce }: Pick<NewRecord, 'key' | 'nonce'>): Promise<void> {
    await this.#connection.run('release', { keys: [recordKey(account, key)], args: [nonce] });
  }

  /** A read does not wait for an engine that has just failed to answer; the beat of the roll call finds it again. */
  #assertThere(): void {
    if (this.state() !== 'there') throw new Error('the store does not answer');
  }
}

const recordKey = (account: string, key: string) => of('record', `${account}:${key}`);

const argsOf = ({ nonce, stage, value, lifeMs }: NewRecord) => [nonce, stage, bufferOf(value), Math.ceil(lifeMs)];

const bufferOf = (value: Uint8Array) => Buffer.from(value.buffer, value.byteOffset, value.byteLength);

function placeReply([versions, askedAt, value, ageMs]: (Buffer | number)[]): PlaceReply {
  const isKept = String(askedAt) !== '';
  return {
    versions: String(versions),
    askedAt: isKept ? Number(String(askedAt)) : undefined,
    ageMs: isKept ? Number(ageMs) : undefined,
    value: value instanceof Buffer && value.length > 0 ? value : undefined,
  };
}
