import { DurableObject, type DurableObjectState } from 'cloudflare:workers';
import type {
  KnownRecord,
  NewCopy,
  NewRecord,
  NewTurn,
  PlaceReply,
  Question,
  Reply,
  Stage,
} from '../../store/shared/remote.ts';
import { Shelf } from './shelf.ts';
import { Versions } from './versions.ts';

interface Window {
  used: number;
  readonly endsAt: number;
}

interface Turn {
  readonly versions: string;
  readonly instance: string;
  readonly until: number;
}

const MAX_WINDOWS = 8;
const MAX_TURNS = 256;

/**
 * All that instances share of one account. What may be forgotten, windows of limits and turns, is in memory; an object is put
 * away only when nobody has asked for it for a while. Everything else is in its SQLite, and ends by an alarm.
 */
export class Account extends DurableObject {
  readonly #shelf: Shelf;
  readonly #versions: Versions;
  readonly #windows = new Map<string, Window>();
  readonly #turns = new Map<string, Turn>();

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.#shelf = new Shelf(ctx.storage);
    this.#versions = new Versions(this.#shelf);
  }

  visit({ places, window }: Question): Reply {
    const now = Date.now();
    return {
      use: window && this.#take(window, now),
      heldMs: Math.max(0, this.#shelf.heldUntil - now),
      places: places.map(({ key, tags, have }): PlaceReply => {
        const versions = this.#versions.of(tags);
        const copy = this.#shelf.copy(key, now);
        if (copy?.versions !== versions) return { versions };
        const { askedAt } = copy;
        if (have?.versions === versions && have.askedAt === askedAt) return { versions, askedAt };
        return { versions, askedAt, ageMs: now - copy.keptAt, value: this.#shelf.valueOf(key) };
      }),
    };
  }

  save(copy: NewCopy): boolean {
    if (this.#versions.of(copy.tags) !== copy.versions) return false;
    const now = Date.now();
    const known = this.#shelf.copy(copy.key, now);
    // One that was asked for in the future comes from a clock that is ahead, and keeps nobody out.
    const askedAt = known?.versions === copy.versions ? known.askedAt : 0;
    if (askedAt > copy.askedAt && askedAt < now + 1_000) return false;
    this.#versions.keep();
    this.#shelf.keepCopy(copy, now);
    return true;
  }

  touch(tags: readonly string[]): void {
    this.#versions.touch(tags);
  }

  takeTurn({ key, versions, instance, lifeMs }: NewTurn): boolean {
    const now = Date.now();
    const known = this.#turns.get(key);
    if (known && known.until > now && known.versions === versions && known.instance !== instance) return false;
    if (this.#turns.size >= MAX_TURNS && !known) this.#turns.clear();
    this.#turns.set(key, { versions, instance, until: now + lifeMs });
    return true;
  }

  passTurn({ key, instance }: Pick<NewTurn, 'key' | 'instance'>): void {
    if (this.#turns.get(key)?.instance === instance) this.#turns.delete(key);
  }

  hold(ms: number): void {
    this.#shelf.hold(Date.now() + ms);
  }

  claim(record: NewRecord): KnownRecord | undefined {
    const now = Date.now();
    const known = this.#shelf.record(record.key, now);
    if (!known) {
      this.#shelf.keepRecord(record, now);
      return undefined;
    }
    return { stage: known.stage as Stage, value: new Uint8Array(known.value), ageMs: now - known.written_at };
  }

  advance(record: NewRecord): boolean {
    const now = Date.now();
    if (this.#shelf.record(record.key, now)?.nonce !== record.nonce) return false;
    this.#shelf.keepRecord(record, now);
    return true;
  }

  settle(record: NewRecord): void {
    const now = Date.now();
    const owner = this.#shelf.record(record.key, now)?.nonce ?? record.nonce;
    if (owner === record.nonce) this.#shelf.keepRecord(record, now);
  }

  release({ key, nonce }: Pick<NewRecord, 'key' | 'nonce'>): void {
    this.#shelf.dropRecord(key, nonce);
  }

  /** A secret for workers that were given none, made once and never given to anybody else. */
  secret(): string {
    return this.#shelf.secret(() => crypto.randomUUID() + crypto.randomUUID());
  }

  override async alarm(): Promise<void> {
    if (await this.#shelf.sweep(Date.now())) this.#versions.forget();
  }

  #take({ name, lengthMs }: NonNullable<Question['window']>, now: number) {
    const known = this.#windows.get(name);
    const open = known && known.endsAt > now ? known : { used: 0, endsAt: now + lengthMs };
    open.used++;
    if (this.#windows.size >= MAX_WINDOWS && !known) this.#windows.clear();
    this.#windows.set(name, open);
    return { used: open.used, leftMs: open.endsAt - now };
  }
}
