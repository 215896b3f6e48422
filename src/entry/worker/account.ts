import { DurableObject } from 'cloudflare:workers';
import {
  epochOf,
  EVERYTHING,
  isSessionOver,
  SESSION_MS,
  type SessionState,
  type Use,
  type Window,
  MAX_REVOKED,
} from '../../store/store.ts';
import { Versions, Writes, type WriteBegin, type WriteBegun, type WriteEnded } from '../../store/writes.ts';
import {
  type Change,
  type KeyQuestion,
  type KeyReply,
  MAX_COOLDOWN_MS,
  MAX_TAGS,
  MAX_VALUE_BYTES,
  type Question,
  type Save,
  type SaveReply,
  type SnapshotReply,
} from '../../store/shared/engine.ts';
import { Leases } from './leases.ts';
import { FOREVER, Rows } from './rows.ts';
import { Windows } from './windows.ts';

/** Without its name, which only our types of that module have. */
type State = ConstructorParameters<typeof DurableObject>[0];

/**
 * What instances share of one account. The platform evicts an object that was not called for a while: leases and a few
 * counts, which are in memory only, are then forgotten. The rest is in its SQLite, and is deleted by an alarm.
 */
export class Account extends DurableObject {
  readonly #now: () => number;
  readonly #rows: Rows;
  #versions: Versions;
  readonly #windows: Windows;
  readonly #writes: Writes;
  readonly #leases = new Leases();

  constructor(ctx: State, env: unknown, now: () => number = () => Date.now()) {
    super(ctx, env);
    this.#now = now;
    this.#rows = new Rows(ctx.storage);
    this.#versions = new Versions(this.#rows.all('versions')[0]);
    this.#windows = new Windows(this.#rows);
    this.#writes = new Writes(this.#rows, (tags) => this.#renew(tags), this.#rows.all('mark'));
  }

  snapshot({ window, session, sessionEpoch = 0, keys }: Question): SnapshotReply {
    const now = this.#begin();
    const use = window && this.#windows.count(window, now);
    return {
      now,
      use,
      cooldownMs: this.#cooldownMs(now),
      session: session === undefined ? undefined : this.#sessionOf(session, sessionEpoch, now),
      keys: isOver(window, use) ? [] : keys.map((question) => this.#reply(question, now)),
    };
  }

  save({ key, tags, version, askedAt, lease, copy, drop }: Save): SaveReply {
    const now = this.#begin();
    this.#leases.end(key, lease);
    if (drop) this.#renew(drop === 'everything' ? [EVERYTHING] : tags.slice(0, 1));
    if (drop === 'key') this.#rows.drop('copy', key);
    // More than a second later than now: the clock was set back meanwhile, and no later answer could take its place.
    if (askedAt > now + 1_000) return 'void';
    if (this.#writes.covers(tags) || this.#versions.of(tags) !== version) return 'void';
    if (!copy) return 'full';
    const before = this.#copyOf(key, now);
    if (before?.version === version && before.askedAt > askedAt) return 'void';
    if (copy.value.byteLength > MAX_VALUE_BYTES) return 'full';
    if (!this.#rows.hasRoom('copy', key, copy.value.byteLength, now)) this.#rows.drop('copy');
    if (!this.#areVersionsKept) this.#keepVersions();
    const facts = { version, askedAt, keptAt: now, freshUntil: now + copy.freshMs };
    this.#rows.put('copy', key, { facts, value: copy.value, until: now + copy.lifeMs });
    return 'kept';
  }

  beginWrite(write: WriteBegin): WriteBegun {
    const now = this.#begin();
    const { window, session } = write;
    const use = window && this.#windows.count(window, now);
    if (isOver(window, use)) return { use, is: 'limit' };
    const isRevoked = session && isSessionOver(session, this.#sessionOf(session.id, session.epoch, now));
    return { use, ...(isRevoked ? { is: 'revoked' } : this.#writes.begin(write, now, this.#cooldownMs(now))) };
  }

  endWrite(write: WriteEnded): void {
    this.#writes.end(write, this.#begin());
  }

  change({ cooldownMs, renewed, revoked }: Change): void {
    const now = this.#begin();
    if (revoked) this.#revoke(revoked, now);
    if (renewed) this.#leases.renew(renewed, now);
    const until = now + Math.min(cooldownMs ?? 0, MAX_COOLDOWN_MS);
    if (until > now + this.#cooldownMs(now)) this.#rows.put('cooldown', '', { facts: until, until });
  }

  /** A secret for workers without `SECRETS`, made once. */
  secret(): string {
    const [kept] = this.#rows.all('secret');
    const secret = kept ?? crypto.randomUUID() + crypto.randomUUID();
    if (kept === undefined) this.#rows.put('secret', '', { facts: secret, until: FOREVER });
    return secret;
  }

  override async alarm(): Promise<void> {
    if (this.#rows.sweep(this.#begin())) return;
    this.#versions = new Versions();
    await this.#rows.clear();
  }

  /** First in each call. Returns the time, which may have been set back: what is from later than now counts as over. */
  #begin(): number {
    const now = this.#now();
    this.#writes.expire(now);
    return now;
  }

  #renew(tags: readonly string[]): void {
    if (this.#versions.renew(tags, MAX_TAGS)) this.#rows.drop('copy');
    if (this.#areVersionsKept) this.#keepVersions();
  }

  /** Not before the first copy is: made-up credentials leave nothing in SQLite. */
  get #areVersionsKept(): boolean {
    return this.#rows.all('versions').length > 0;
  }

  #keepVersions(): void {
    this.#rows.put('versions', '', { facts: this.#versions.facts, until: FOREVER });
  }

  #sessionOf(id: string, epoch: number, now: number): SessionState {
    const isRevoked = this.#rows.find('session', id, now) === true;
    return { isRevoked, epoch: this.#epochAfter(epoch, SESSION_MS, now) };
  }

  /** At least this one. Kept while sessions are used, which they are every seven days. */
  #epochAfter(least: number, lifeMs: number, now: number): number {
    const epoch = Math.max(epochOf(this.#rows.find('epoch', '', now)), epochOf(least));
    if (epoch > epochOf(this.#rows.find('epoch', '', now + lifeMs / 2)))
      this.#rows.put('epoch', '', { facts: epoch, until: now + lifeMs });
    return epoch;
  }

  #revoke({ id, epoch = 0, lifeMs }: NonNullable<Change['revoked']>, now: number): void {
    this.#rows.dropExpired(now);
    if (id !== undefined) this.#rows.put('session', id, { facts: true, until: now + lifeMs });
    const current = this.#epochAfter(epoch, lifeMs, now);
    if (this.#rows.all('session').length <= MAX_REVOKED) return;
    this.#epochAfter(current + 1, lifeMs, now);
    this.#rows.drop('session');
  }

  #cooldownMs(now: number): number {
    const leftMs = (this.#rows.find('cooldown', '', now) ?? now) - now;
    return leftMs > MAX_COOLDOWN_MS ? 0 : leftMs;
  }

  /** One that was kept later than now is from before the clock was set back. */
  #copyOf(key: string, now: number) {
    const copy = this.#rows.find('copy', key, now);
    if (!copy || copy.keptAt <= now) return copy;
    this.#rows.drop('copy', key);
    return undefined;
  }

  #reply(question: KeyQuestion, now: number): KeyReply | undefined {
    const { key, tags, have } = question;
    if (this.#writes.covers(tags)) return undefined;
    const version = this.#versions.of(tags);
    const own = have?.version === version ? have : undefined;
    const kept = this.#copyOf(key, now);
    const isOlder = own !== undefined && kept !== undefined && kept.askedAt < own.askedAt;
    const copy = kept?.version === version && !isOlder ? kept : undefined;
    const isFresh = own?.isFresh === true || (copy !== undefined && copy.freshUntil > now);
    const isNew = copy !== undefined && copy.askedAt !== own?.askedAt;
    const lease = isFresh ? undefined : this.#leases.take(question, { version, isNew, now });
    if (!copy) return { version, lease };
    const value = isNew ? this.#rows.valueOf('copy', key) : undefined;
    return { version, copy: { askedAt: copy.askedAt, ageMs: now - copy.keptAt, value }, lease };
  }
}

const isOver = (window: Window | undefined, use: Use | undefined): boolean =>
  window !== undefined && use !== undefined && use.used > window.limit;
