import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { exampleRequest } from '../../../support/examples.ts';

type What = 'read' | 'overview' | 'purchase';

/** A request without a good answer. Instants by `performance.now()`. */
interface Failure {
  readonly what: What;
  readonly sentAt: number;
  readonly failedAt: number;
  readonly why: string;
}

interface Purchase {
  readonly key: string;
  /** Whether a client was told that it was made. */
  isTold: boolean;
  /** Whether one was told that nobody knows. */
  isUnknown: boolean;
}

interface Answered {
  readonly status: number;
  readonly text: string;
}

interface Visitor {
  readonly ask: (what: What, key?: string) => Promise<Answered>;
  close(): Promise<void>;
}

const VISITORS = 64;
/** Each comes with a connection for one request, this often. */
const NEWCOMER_MS = 50;
const NEWCOMERS = 2;
/** Most pauses are short, and some are as long as a connection may well be idle. */
const pauseMs = () => (Math.random() < 0.05 ? 1_500 : 200) * Math.random();
/** Longer than a gateway takes to say that it has no answer. */
const ANSWER_MS = 15_000;
const AGAIN_MS = 100;
const MOST_TRIES = 50;
/** Purchases that were answered and are asked for again with their key. */
const AGAIN = 0.2;

const REQUESTS = {
  read: exampleRequest('getSubscription'),
  overview: { method: 'GET', path: '/bff/v1/account-overview', body: undefined },
  purchase: exampleRequest('purchasePlan'),
} as const;

const isGood = (answered: Answered | undefined) => answered?.status === 200 || answered?.status === 201;

/** 64 clients with a connection and an account each, and newcomers: they read, look at overviews, and buy, each with a key. */
export class Visitors {
  readonly failures: Failure[] = [];
  readonly purchases: Purchase[] = [];
  requests = 0;
  readonly #url: string;
  #isOver = false;
  #names = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Until they are told to leave. */
  async run(): Promise<void> {
    await Promise.all([
      ...Array.from({ length: VISITORS }, () => this.#stay()),
      ...Array.from({ length: NEWCOMERS }, () => this.#come()),
    ]);
  }

  leave(): void {
    this.#isOver = true;
  }

  /** Of purchases that are charged for this often, by key, what is wrong. */
  wrongIn(charges: Readonly<Record<string, number>>) {
    const twice = this.purchases.filter(({ key }) => (charges[key] ?? 0) > 1);
    const untold = this.purchases.filter(({ isTold, isUnknown }) => !isTold && !isUnknown);
    const unmade = this.purchases.filter(({ key, isTold }) => isTold && charges[key] === undefined);
    return { twice, untold, unmade };
  }

  async #stay(): Promise<void> {
    const visitor = this.#connect();
    while (!this.#isOver) {
      await this.#act(visitor);
      await sleep(pauseMs());
    }
    await visitor.close();
  }

  async #come(): Promise<void> {
    while (!this.#isOver) {
      const visitor = this.#connect({ Connection: 'close' });
      await this.#act(visitor);
      await visitor.close();
      await sleep(NEWCOMER_MS * Math.random() * 2);
    }
  }

  /** One account and one connection at a time, the next one when that has been closed. */
  #connect(more: Readonly<Record<string, string>> = {}): Visitor {
    const client = new Client(this.#url, { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
    const own = { Authorization: `Token visitor-${this.#names++}`, ...more };
    const ask: Visitor['ask'] = async (what, key) => {
      const { method, path, body = null } = REQUESTS[what];
      const headers = {
        ...own,
        ...(body !== null && { 'Content-Type': 'application/json' }),
        ...(key !== undefined && { 'Idempotency-Key': key }),
      };
      const answer = await client.request({ method, path, headers, body });
      return { status: answer.statusCode, text: await answer.body.text() };
    };
    return { ask, close: () => client.destroy() };
  }

  async #act(visitor: Visitor): Promise<void> {
    const chance = Math.random();
    if (chance < 0.2) return this.#buy(visitor);
    const what = chance < 0.4 ? 'overview' : 'read';
    await this.#try(() => visitor.ask(what), what);
  }

  /** Until it is known how it ended. */
  async #buy({ ask }: Visitor): Promise<void> {
    const purchase: Purchase = { key: `key-${this.#names++}`, isTold: false, isUnknown: false };
    this.purchases.push(purchase);
    const buy = () => ask('purchase', purchase.key);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const answered = await this.#try(buy, 'purchase', tries === 0);
      purchase.isTold = isGood(answered);
      purchase.isUnknown = answered?.text.includes('outcome_unknown') ?? false;
      if (purchase.isTold || purchase.isUnknown) break;
      await sleep(AGAIN_MS);
    }
    if (purchase.isTold && Math.random() < AGAIN) await this.#try(buy, 'purchase');
  }

  /** Of a purchase that is tried again only a connection's end is a failure: what comes of it is its own matter. */
  async #try(ask: () => Promise<Answered>, what: What, isFirst = true): Promise<Answered | undefined> {
    const sentAt = performance.now();
    this.requests++;
    const fail = (why: string) => void this.failures.push({ what, sentAt, failedAt: performance.now(), why });
    try {
      const answered = await ask();
      if (!isGood(answered) && isFirst) fail(`${answered.status} ${answered.text.slice(0, 200)}`);
      return answered;
    } catch (error) {
      fail(String(error));
      return undefined;
    }
  }
}
