import { boundedMap } from '../bounded.ts';
import { type AccountId, EVERYTHING, type Tag } from '../store.ts';

/** Accounts; beyond it the oldest are let go of, and their copies elsewhere end by their age alone. */
const MAX_ACCOUNTS = 100_000;
/** Accounts that are told about at the same time. */
const AT_ONCE = 100;
/** Of one account; more is everything of it. */
const MAX_TAGS = 32;

/** What has happened to one account and the engine has not heard of. */
interface News {
  /** Each with the number of the last time that it was touched. */
  readonly tags: Map<Tag, number>;
  /** What is to be said of records, by the nonces of their requests: the last word counts. */
  readonly records: Map<string, Say>;
}

type Say = () => Promise<void>;
type Tell = (account: AccountId, tags: readonly Tag[]) => Promise<void>;

/** Keeps what an engine that did not answer has to hear before it is used again (`contract.md` section 7). */
export class Untold {
  readonly #news = boundedMap<AccountId, News>({ max: MAX_ACCOUNTS });
  readonly #tell: Tell;
  #times = 0;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  get accounts(): number {
    return this.#news.size;
  }

  keepTags(account: AccountId, tags: readonly Tag[]): void {
    const { tags: kept } = this.#of(account);
    for (const tag of tags) kept.set(tag, ++this.#times);
    if (kept.size <= MAX_TAGS) return;
    kept.clear();
    kept.set(EVERYTHING, ++this.#times);
  }

  keepRecord(account: AccountId, nonce: string, say: Say): void {
    this.#of(account).records.set(nonce, say);
  }

  /** Rejects where the engine still does not answer. What came while it was being told stays kept. */
  async tell(account: AccountId): Promise<void> {
    const news = this.#news.get(account);
    if (!news) return;
    const tags = [...news.tags];
    const records = [...news.records];
    // First what is worthless: whoever learns how a write ended may not read what was there before it.
    await this.#tell(account, [...news.tags.keys()]);
    await Promise.all(records.map(([, say]) => say()));
    for (const [tag, time] of tags) if (news.tags.get(tag) === time) news.tags.delete(tag);
    for (const [nonce, say] of records) if (news.records.get(nonce) === say) news.records.delete(nonce);
    if (news.tags.size + news.records.size === 0 && this.#news.peek(account) === news) this.#news.delete(account);
  }

  /** Whoever waits longest, first. One account whose news cannot be told does not keep back those of the others. */
  async tellAll(): Promise<void> {
    const accounts = [...this.#news.keys()].toReversed();
    let failure: Error | undefined;
    for (let i = 0; i < accounts.length; i += AT_ONCE) {
      const told = await Promise.allSettled(accounts.slice(i, i + AT_ONCE).map((account) => this.tell(account)));
      const failed = told.find((one) => one.status === 'rejected');
      if (failed) failure = new Error('not all is told', { cause: failed.reason });
    }
    if (failure) throw failure;
  }

  #of(account: AccountId): News {
    const known = this.#news.get(account);
    if (known) return known;
    const news: News = { tags: new Map(), records: new Map() };
    this.#news.set(account, news);
    return news;
  }
}
