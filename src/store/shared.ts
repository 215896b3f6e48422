import type { Clock } from '../core/runtime.ts';
import { MemoryLimits } from './memory/limits.ts';
import { Marks } from './memory/marks.ts';
import { SharedAnswers } from './shared/answers.ts';
import { Copies } from './shared/copies.ts';
import { SharedLimits } from './shared/limits.ts';
import { OwnRecords } from './shared/own-records.ts';
import { SharedRecords } from './shared/records.ts';
import type { Remote } from './shared/remote.ts';
import { SharedTurns } from './shared/turns.ts';
import { Untold } from './shared/untold.ts';
import type { Vault } from './shared/vault.ts';
import {
  type Arrival,
  type Claim,
  type Found,
  foundNowhere,
  type NewWrite,
  type Place,
  type Store,
  type Usage,
  type Visit,
  type WriteEnd,
  type WriteRecord,
} from './store.ts';

/** Records that are written again in one go. */
const AT_ONCE = 500;

interface SharedStoreOptions {
  readonly remote: Remote;
  readonly vault: Vault;
  /** Bounds the copies of answers that this instance keeps, keys and bodies together. */
  readonly maxBytes: number;
  readonly clock: Clock;
  /** Whether the engine may come back empty. */
  readonly isVolatile: boolean;
}

/**
 * State that instances share through an engine: Redis, or Durable Objects. Everything that leaves this process has a
 * hashed name and a sealed value. What the engine does not hear is kept until it does.
 */
export class SharedStore implements Store {
  readonly answers: SharedAnswers;
  readonly turns: SharedTurns;
  readonly records: SharedRecords;
  readonly limits: SharedLimits;
  readonly #of: SharedStoreOptions;
  readonly #copies: Copies;
  readonly #untold: Untold;
  /** Of this instance's writes alone: the engine keeps none. */
  readonly #marks = new Marks();
  readonly #own: OwnRecords | undefined;
  readonly #localLimits = new MemoryLimits();

  constructor(options: SharedStoreOptions) {
    const { remote, vault, clock } = options;
    this.#of = options;
    this.#copies = new Copies(options);
    this.#own = options.isVolatile ? new OwnRecords() : undefined;
    this.#untold = new Untold((account, tags) => this.answers.tell(account, tags));
    this.answers = new SharedAnswers({
      remote,
      vault,
      copies: this.#copies,
      untold: this.#untold,
      clock,
      marked: (place, now) => this.#marked(place, now),
    });
    this.turns = new SharedTurns({ remote, vault });
    this.records = new SharedRecords({ remote, vault, untold: this.#untold, own: this.#own });
    this.limits = new SharedLimits({ remote, local: this.#localLimits, clock });
  }

  async visit({ account, now, window, places: placesOf }: Arrival): Promise<Visit> {
    const places = placesOf();
    let hidden: Found | undefined; // equal reads of one request share a call
    const marked = (place: Place, at?: number) => this.#marked(place, at) && (hidden ??= foundNowhere());
    try {
      const { found, use, heldMs } = await this.answers.ask({ account, places, window });
      if (heldMs > 0) this.#localLimits.hold(account, now + heldMs);
      const known = new Map(places.map(({ key }, i) => [key, found[i]]));
      return {
        use: use && { used: use.used, endsAt: now + use.leftMs },
        known: { lookup: (place, at) => marked(place, at) ?? known.get(place.key) ?? this.answers.lookup(place) },
      };
    } catch {
      const use = window && this.#localLimits.take({ account, now, ...window });
      const away = this.answers.away();
      return { use, known: { lookup: (place, at) => marked(place, at) ?? away } };
    }
  }

  async beginWrite(write: NewWrite): Promise<WriteRecord | undefined> {
    this.#marks.assertRoom(write);
    const claim = claimOf(write);
    const known = claim && (await this.records.claim(claim));
    if (known) return known;
    const equal = this.#marks.equalTo(write);
    if (equal && claim) await this.records.release(claim);
    if (equal) return { fingerprint: write.purchase ?? '', outcome: equal };
    this.#marks.add(write);
    try {
      await Promise.all([claim && this.records.begin(claim), this.answers.touch(write.principal, write.tags)]);
    } catch (error) {
      await this.endWrite(write, 'not_sent');
      throw error;
    }
    return undefined;
  }

  async endWrite(write: NewWrite, end: WriteEnd): Promise<void> {
    const claim = claimOf(write);
    if (end === 'unknown') this.#marks.leave(write);
    else this.#marks.remove(write);
    // Who learns how it ended may read elsewhere the moment it does.
    if (end !== 'not_sent') await this.answers.touch(write.principal, write.tags, true);
    if (!claim) return;
    const isFree = end === 'refused' || end === 'not_sent' || (end !== 'unknown' && !write.record);
    if (isFree) await this.records.release(claim);
    else await this.records.settle(claim, end);
  }

  #marked({ account, tags }: Place, now = -Infinity): Found | undefined {
    return this.#marks.covers(account, tags, now) ? foundNowhere() : undefined;
  }

  /** For an engine that is there again: what it has not heard. */
  tellAll(): Promise<void> {
    return this.#untold.tellAll();
  }

  /** For one that came back empty: the records that this instance has written. Says so after each part. */
  async writeAgain(onProgress: () => Promise<unknown>): Promise<void> {
    const records = [...(this.#own?.alive(this.#of.clock.now()) ?? [])];
    for (let i = 0; i < records.length; i += AT_ONCE) {
      const some = records.slice(i, i + AT_ONCE);
      const write = () => Promise.all(some.map(({ claim, outcome }) => this.records.write(claim, outcome)));
      await write().catch(write); // one that came late does not make all begin anew
      await onProgress();
    }
  }

  /** Accounts of which the engine has not heard all. */
  get untoldAccounts(): number {
    return this.#untold.accounts;
  }

  usage(): Usage {
    const own = this.#own?.size ?? 0;
    return {
      ...this.#copies.usage(),
      ...this.#localLimits.usage(),
      records: own,
      firmRecords: 0,
    };
  }
}

/** A purchase without a key has a record all the same, by which equal ones meet. A client's key holds no space. */
function claimOf({ record, purchase, principal, nonce, now, endsAt, until }: NewWrite): Claim | undefined {
  if (record || purchase === undefined) return record;
  const key = `equal ${purchase}`;
  const own = { account: principal, key, fingerprint: purchase, nonce, now, endsAt, expiresAt: until };
  return { ...own, lasting: true };
}
