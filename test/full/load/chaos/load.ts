import { setTimeout as sleep } from 'node:timers/promises';
import { exampleRequest } from '../../../support/examples.ts';
import { markOf } from '../../../support/marked.ts';
import type { OperationId } from '../../../support/account-api.ts';
import type { ChaosGateway } from './gateways.ts';
import type { ChaosUpstream } from './upstream.ts';
import type { Outcome, Wanted } from '../../../../bench/harness/client.ts';

/** A purchase with a key. Instants by `performance.now()`. */
export interface Order {
  readonly key: string;
  readonly beganAt: number;
  /** When it was answered for good. */
  endedAt: number;
  outcome: 'open' | 'good' | 'unknown';
}

export interface OldRead {
  readonly at: number;
  readonly account: string;
  readonly version: number;
  readonly least: number;
  readonly cacheStatus: string;
}

const BUYERS = 6;
const WRITERS = 10;
const READERS = 2;
/** Of one account, before there is another. */
const PAIRS = 30;
const PAUSE_MS = 100;
const LEAVES_MS = 15_000;
/** How much later a purchase that was answered is asked for again. */
const AGAIN_MS = 12_000;
/** How many are sent through two instances at once. */
const RACES = 0.3;

const pick = <T>(all: readonly T[]): T => {
  const one = all[Math.floor(Math.random() * all.length)];
  if (one === undefined) throw new Error('there is nothing to choose from');
  return one;
};

type Verdict = Order['outcome'] | 'refused' | 'odd';

function verdictOf({ status, text }: Outcome): Verdict {
  if (status === 200 || status === 201) return 'good';
  if (text.includes('"outcome":"unknown"') || text.includes('"code":"outcome_unknown"')) return 'unknown';
  if (status === 503 || status === 429 || text.includes('"retryable":true')) return 'refused';
  return status === 0 || text.includes('"code":"idempotency_in_progress"') ? 'open' : 'odd';
}

/** Buys, writes and reads through all instances, and notes what came of it. */
export class ChaosLoad {
  readonly orders: Order[] = [];
  readonly oldReads: OldRead[] = [];
  readonly odd: string[] = [];
  pairs = 0;
  reads = 0;
  /** By what was asked and answered. */
  readonly failed = new Map<string, number>();
  readonly #gateways: readonly ChaosGateway[];
  readonly #upstream: ChaosUpstream;
  readonly #later = new Set<Promise<unknown>>();
  readonly #over = new AbortController();
  #names = 0;

  constructor(gateways: readonly ChaosGateway[], upstream: ChaosUpstream) {
    this.#gateways = gateways;
    this.#upstream = upstream;
  }

  /** Until it is told to end; then whatever is still open is ended, and what was to be asked again later is at once. */
  async run(): Promise<void> {
    const loops = [
      ...Array.from({ length: BUYERS }, () => this.#loop(() => this.#order())),
      ...Array.from({ length: WRITERS }, () => this.#loop(() => this.#account())),
      ...Array.from({ length: READERS }, (_, i) => this.#loop(() => this.#reader(`reader-${i}`))),
    ];
    await Promise.all(loops);
    await Promise.all(this.#later);
  }

  end(): void {
    this.#over.abort();
  }

  async #loop(act: () => Promise<void>): Promise<void> {
    while (!this.#over.signal.aborted) await act();
  }

  async #order(): Promise<void> {
    const [account, key] = [`buyer-${this.#names++}`, `key-${this.#names++}`];
    const order: Order = { key, beganAt: performance.now(), endedAt: Infinity, outcome: 'open' };
    this.orders.push(order);
    const races = Math.random() < RACES ? 2 : 1;
    await Promise.all(Array.from({ length: races }, () => this.#buy(order, account)));
    if (order.outcome === 'good') await this.#read(account, 'getSubscription');
    this.#after(Math.random() * AGAIN_MS, () => this.#buy(order, account));
    await sleep(PAUSE_MS);
  }

  /** Again and again, until it is answered for good. */
  async #buy(order: Order, account: string): Promise<void> {
    for (;;) {
      const headers = { 'Idempotency-Key': order.key };
      const outcome = await pick(this.#gateways).client.send(wantedOf('purchasePlan', account, headers));
      const verdict = verdictOf(outcome);
      if (verdict === 'odd') this.odd.push(`purchase: ${outcome.status} ${outcome.text.slice(0, 300)}`);
      if (verdict !== 'good') this.#failed('purchase', outcome);
      if (verdict === 'good' || verdict === 'unknown') {
        order.endedAt = Math.min(order.endedAt, performance.now());
        if (order.outcome !== 'good') order.outcome = verdict;
        return;
      }
      await sleep(PAUSE_MS);
    }
  }

  /** Writes and reads of one account, in turn; with an outcome that is not known its copies are of no use for a minute. */
  async #account(): Promise<void> {
    const account = `writer-${this.#names++}`;
    for (let n = 0; n < PAIRS && !this.#over.signal.aborted; n++) {
      for (const { client } of this.#gateways) await this.#look(client.send(wantedOf(READ, account)), account);
      const reading = this.#read(account, READ); // under way when the write begins
      const written = await this.#write(account);
      await reading;
      const wasGood = await this.#read(account, READ);
      await this.#read(account, READ);
      if (written === 'good' && wasGood) this.pairs++;
      if (written !== 'good') return;
    }
  }

  async #reader(account: string): Promise<void> {
    for (const { client } of this.#gateways) await this.#look(client.send(wantedOf(READ, account)), account);
    await sleep(PAUSE_MS);
  }

  async #write(account: string): Promise<Verdict> {
    for (;;) {
      const outcome = await pick(this.#gateways).client.send(wantedOf('updateReferralConfig', account));
      const verdict = verdictOf(outcome);
      if (verdict !== 'good') this.#failed('write', outcome);
      if (verdict !== 'refused' || this.#over.signal.aborted) return verdict;
      await sleep(PAUSE_MS);
    }
  }

  async #read(account: string, id: OperationId): Promise<boolean> {
    return this.#look(pick(this.#gateways).client.send(wantedOf(id, account)), account);
  }

  /** Nothing changes an account but writes through the gateways: what is true when a read begins is the least to answer. */
  async #look(asking: Promise<Outcome>, account: string): Promise<boolean> {
    const [at, least] = [performance.now(), this.#upstream.versionOf(account)];
    const outcome = await asking;
    const { status, text, cacheStatus } = outcome;
    this.reads++;
    if (status !== 200) {
      this.#failed('read', outcome);
      return false;
    }
    const version = Number(markOf(text));
    if (version < least) this.oldReads.push({ at, account, version, least, cacheStatus });
    return true;
  }

  #failed(what: string, { status, text }: Outcome): void {
    const name = `${what} ${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`.trim();
    this.failed.set(name, (this.failed.get(name) ?? 0) + 1);
  }

  #after(ms: number, act: () => Promise<unknown>): void {
    const later = sleep(ms, undefined, { signal: this.#over.signal })
      .catch(() => undefined)
      .then(act)
      .finally(() => this.#later.delete(later));
    this.#later.add(later);
  }
}

const READ: OperationId = 'getReferralConfig';

function wantedOf(id: OperationId, account: string, headers: Readonly<Record<string, string>> = {}): Wanted {
  const { method, path, body } = exampleRequest(id);
  const json = body === undefined ? {} : { body: JSON.parse(body) as object };
  return { method, path, account, headers, leavesAfterMs: LEAVES_MS, ...json };
}
