import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';

export interface Wanted {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Whose key is sent; none where it is left out. */
  readonly account?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** The client does not wait longer. */
  readonly leavesAfterMs?: number;
}

export interface Outcome {
  /** 0 where there was no answer. */
  readonly status: number;
  /** When it was due, by `performance.now()`. */
  readonly at: number;
  /** From when it was due, so that a generator that is late hides nothing. */
  readonly ms: number;
  readonly cacheStatus: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const TICK_MS = 1;

/** A client of many connections, all answers read to their end. */
export class Client {
  inFlight = 0;
  readonly #pool: Pool;

  constructor(url: string, connections: number) {
    this.#pool = new Pool(url, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  }

  async send(wanted: Wanted, at: number = performance.now()): Promise<Outcome> {
    const { method = 'GET', path, account, headers = {}, body, leavesAfterMs } = wanted;
    const leaves = leavesAfterMs === undefined ? null : AbortSignal.timeout(leavesAfterMs);
    this.inFlight++;
    try {
      const answer = await this.#pool.request({
        method,
        path,
        headers: {
          ...(account !== undefined && { Authorization: `Token ${account}` }),
          ...(body && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
        ...(leaves && { signal: leaves }),
      });
      const text = await answer.body.text();
      const { headers: told, statusCode: status } = answer;
      const cacheStatus = String(told['cache-status'] ?? '');
      return { status, at, ms: performance.now() - at, cacheStatus, headers: told, text };
    } catch {
      return { status: 0, at, ms: performance.now() - at, cacheStatus: '', headers: {}, text: '' };
    } finally {
      this.inFlight--;
    }
  }

  /** Resolves when all that was sent has ended, or after `ms`. */
  async settled(ms: number): Promise<void> {
    const endAt = performance.now() + ms;
    while (this.inFlight > 0 && performance.now() < endAt) await sleep(TICK_MS);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

interface Pace {
  readonly rate: number;
  readonly seconds: number;
  /** Held back while there are as many under way; without it an open loop, which nothing holds back. */
  readonly mayGoOn?: () => boolean;
}

/** Calls `send` this many times a second, each with the moment at which it was due. */
export async function pace({ rate, seconds, mayGoOn = () => true }: Pace, send: (at: number) => void): Promise<void> {
  const beganAt = performance.now();
  const all = Math.round(rate * seconds);
  for (let due = 0; due < all; await sleep(TICK_MS)) {
    const until = Math.min(all, ((performance.now() - beganAt) / 1_000) * rate);
    for (; due < until && mayGoOn(); due++) send(beganAt + (due * 1_000) / rate);
  }
}
