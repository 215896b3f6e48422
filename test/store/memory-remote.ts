import type {
  KnownRecord,
  NewCopy,
  NewRecord,
  NewTurn,
  PlaceQuestion,
  PlaceReply,
  Question,
  Remote,
  Reply,
} from '../../src/store/shared/remote.ts';

type Lasting<T> = T & { readonly endsAt: number };

interface Account {
  readonly epoch: string;
  readonly tags: Map<string, string>;
  readonly copies: Map<string, Lasting<NewCopy>>;
}

/** An engine in this process that several stores can share. Its time is its own: it stands still unless told to pass. */
export class MemoryRemote implements Remote {
  readonly #accounts = new Map<string, Account>();
  readonly #records = new Map<string, Lasting<NewRecord & { readonly since: number }>>();
  readonly #windows = new Map<string, Lasting<{ used: number }>>();
  readonly #holds = new Map<string, number>();
  readonly #turns = new Map<string, Lasting<NewTurn>>();
  #now = 0;

  pass(ms: number): void {
    this.#now += ms;
  }

  async visit(account: string, { places, window }: Question): Promise<Reply> {
    const heldMs = Math.max(0, (this.#holds.get(account) ?? 0) - this.#now);
    return {
      heldMs,
      use: window && this.#count(`${account} ${window.name}`, window.lengthMs),
      places: places.map((place) => this.#find(account, place)),
    };
  }

  async save(account: string, copy: NewCopy): Promise<boolean> {
    if (copy.versions !== this.#versions(account, copy.tags)) return false;
    const { copies } = this.#of(account);
    const known = this.#alive(copies.get(copy.key));
    if (known?.versions === copy.versions && known.askedAt > copy.askedAt) return false;
    copies.set(copy.key, { ...copy, endsAt: this.#now + copy.lifeMs });
    return true;
  }

  async touch(account: string, tags: readonly string[]): Promise<void> {
    if (tags.includes('*')) this.#accounts.delete(account);
    for (const tag of tags) this.#of(account).tags.set(tag, crypto.randomUUID());
  }

  async takeTurn(account: string, turn: NewTurn): Promise<boolean> {
    const known = this.#alive(this.#turns.get(`${account} ${turn.key}`));
    if (known?.versions === turn.versions && known.instance !== turn.instance) return false;
    this.#turns.set(`${account} ${turn.key}`, { ...turn, endsAt: this.#now + turn.lifeMs });
    return true;
  }

  async passTurn(account: string, { key, instance }: Pick<NewTurn, 'key' | 'instance'>): Promise<void> {
    if (this.#turns.get(`${account} ${key}`)?.instance === instance) this.#turns.delete(`${account} ${key}`);
  }

  async hold(account: string, ms: number): Promise<void> {
    this.#holds.set(account, Math.max(this.#holds.get(account) ?? 0, this.#now + ms));
  }

  async claim(account: string, record: NewRecord): Promise<KnownRecord | undefined> {
    const known = this.#record(account, record.key);
    if (known) return { stage: known.stage, value: known.value, ageMs: this.#now - known.since };
    this.#write(account, record);
    return undefined;
  }

  async advance(account: string, record: NewRecord): Promise<boolean> {
    const isOwn = this.#record(account, record.key)?.nonce === record.nonce;
    if (isOwn) this.#write(account, record);
    return isOwn;
  }

  async settle(account: string, record: NewRecord): Promise<void> {
    const known = this.#record(account, record.key);
    if (!known || known.nonce === record.nonce) this.#write(account, record);
  }

  async release(account: string, { key, nonce }: Pick<NewRecord, 'key' | 'nonce'>): Promise<void> {
    if (this.#record(account, key)?.nonce === nonce) this.#records.delete(`${account} ${key}`);
  }

  #of(account: string): Account {
    const known = this.#accounts.get(account);
    if (known) return known;
    const made = { epoch: crypto.randomUUID(), tags: new Map(), copies: new Map() };
    this.#accounts.set(account, made);
    return made;
  }

  #versions(account: string, tags: readonly string[]): string {
    const { epoch, tags: touched } = this.#of(account);
    return [epoch, ...tags.map((tag) => touched.get(tag) ?? '0')].join('.');
  }

  #find(account: string, { key, tags, have }: PlaceQuestion): PlaceReply {
    const versions = this.#versions(account, tags);
    const copy = this.#alive(this.#of(account).copies.get(key));
    if (copy?.versions !== versions) return { versions };
    const isThere = have?.versions === versions && have.askedAt === copy.askedAt;
    return { versions, askedAt: copy.askedAt, value: isThere ? undefined : copy.value };
  }

  #count(name: string, lengthMs: number) {
    const window = this.#alive(this.#windows.get(name)) ?? { used: 0, endsAt: this.#now + lengthMs };
    window.used += 1;
    this.#windows.set(name, window);
    return { used: window.used, leftMs: window.endsAt - this.#now };
  }

  #record(account: string, key: string) {
    return this.#alive(this.#records.get(`${account} ${key}`));
  }

  #write(account: string, record: NewRecord): void {
    const since = this.#now;
    this.#records.set(`${account} ${record.key}`, { ...record, since, endsAt: since + record.lifeMs });
  }

  #alive<T>(kept: Lasting<T> | undefined): Lasting<T> | undefined {
    return kept && kept.endsAt > this.#now ? kept : undefined;
  }
}
