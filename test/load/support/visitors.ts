import { setTimeout as sleep } from 'node:timers/promises';
import { buildConnector, Client } from 'undici';
import { exampleRequest } from '../../support/examples.ts';

type What = 'read' | 'overview' | 'purchase';

/** A request without a good answer. Instants by `performance.now()`. */
export interface Failure {
  readonly what: What;
  readonly sentAt: number;
  readonly failedAt: number;
  /** The client's own of its connection; 0 where there was none. */
  readonly port: number;
  /** How many requests had gone over the connection before. */
  readonly nth: number;
  readonly why: string;
}

interface Purchase {
  readonly key: string;
  readonly account: string;
  /** Whether a client was told that it was made. */
  isTold: boolean;
  /** Whether one was told that nobody knows. */
  isUnknown: boolean;
}

interface Answered {
  readonly status: number;
  readonly text: string;
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

const connectorOf = buildConnector({});

/** One connection at a time, the next one when that has been closed. */
class Connection {
  readonly #client: Client;
  readonly #headers: Readonly<Record<string, string>>;
  port = 0;
  nth = 0;

  constructor(url: string, headers: Readonly<Record<string, string>> = {}) {
    this.#headers = headers;
    this.#client = new Client(url, {
      headersTimeout: ANSWER_MS,
      bodyTimeout: ANSWER_MS,
      connect: (options, done) => {
        [this.port, this.nth] = [0, 0];
        connectorOf(options, (...given) => {
          this.port = given[1]?.localPort ?? 0;
          done(...given);
        });
      },
    });
  }

  async ask(what: What, account: string, key?: string): Promise<Answered> {
    const { method, path, body } = REQUESTS[what];
    const headers = {
      Authorization: `Token ${account}`,
      ...this.#headers,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(key !== undefined && { 'Idempotency-Key': key }),
    };
    const answer = await this.#client.request({ method, path, headers, ...(body !== undefined && { body }) });
    const text = await answer.body.text();
    this.nth++;
    return { status: answer.statusCode, text };
  }

  close = () => this.#client.destroy();
}

const REQUESTS = {
  read: exampleRequest('getSubscription'),
  overview: { method: 'GET', path: '/bff/v1/account-overview', body: undefined },
  purchase: exampleRequest('purchasePlan'),
} as const;

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
    const connection = new Connection(this.#url);
    const account = `visitor-${this.#names++}`;
    while (!this.#isOver) {
      await this.#act(connection, account);
      await sleep(pauseMs());
    }
    await connection.close();
  }

  async #come(): Promise<void> {
    while (!this.#isOver) {
      const connection = new Connection(this.#url, { Connection: 'close' });
      await this.#act(connection, `newcomer-${this.#names++}`);
      await connection.close();
      await sleep(NEWCOMER_MS * Math.random() * 2);
    }
  }

  async #act(connection: Connection, account: string): Promise<void> {
    const chance = Math.random();
    if (chance < 0.2) return this.#buy(connection, account);
    await this.#try(connection, chance < 0.4 ? 'overview' : 'read', account);
  }

  /** Until it is known how it ended. */
  async #buy(connection: Connection, account: string): Promise<void> {
    const purchase: Purchase = { key: `key-${this.#names++}`, account, isTold: false, isUnknown: false };
    this.purchases.push(purchase);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const isFirst = tries === 0;
      const answered = await this.#try(connection, 'purchase', account, { key: purchase.key, isFirst });
      purchase.isTold = isGood(answered);
      purchase.isUnknown = answered?.text.includes('outcome_unknown') ?? false;
      if (purchase.isTold || purchase.isUnknown) break;
      await sleep(AGAIN_MS);
    }
    if (purchase.isTold && Math.random() < AGAIN)
      await this.#try(connection, 'purchase', account, { key: purchase.key, isFirst: true });
  }

  /** Of a purchase that is tried again only a connection's end is a failure: what comes of it is its own matter. */
  async #try(
    connection: Connection,
    what: What,
    account: string,
    { key, isFirst }: { readonly key?: string; readonly isFirst: boolean } = { isFirst: true },
  ): Promise<Answered | undefined> {
    const sentAt = performance.now();
    this.requests++;
    const fail = (why: string) => {
      const { port, nth } = connection;
      this.failures.push({ what, sentAt, failedAt: performance.now(), port, nth, why });
    };
    try {
      const answered = await connection.ask(what, account, key);
      if (!isGood(answered) && isFirst) fail(`${answered.status} ${answered.text.slice(0, 200)}`);
      return answered;
    } catch (error) {
      fail(String(error));
      return undefined;
    }
  }
}

const isGood = (answered: Answered | undefined) => answered?.status === 200 || answered?.status === 201;
