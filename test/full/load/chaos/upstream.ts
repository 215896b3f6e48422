import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf, idOf, tokenOf } from '../../../support/marked.ts';
import type { OperationId } from '../../../support/account-api.ts';

/** A purchase that was made, by `performance.now()`. */
export interface Charge {
  readonly key: string;
  readonly at: number;
}

/** Keeps a version of each account's state: each write that is carried out raises it, each answer carries it. */
export class ChaosUpstream {
  readonly charges: Charge[] = [];
  readonly #versions = new Map<string, number>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  versionOf(account: string): number {
    return this.#versions.get(account) ?? 1;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = { method: request.method ?? '', path: request.url ?? '', headers: headersOf(request) };
    const [id, account] = [idOf(call), tokenOf(call)];
    request.resume();
    if (call.method === 'GET') {
      const version = this.versionOf(account); // what is true now, whenever it is told
      await sleep(readMs());
      return this.#send(response, id, version);
    }
    await sleep(writeMs());
    const version = this.versionOf(account) + 1;
    this.#versions.set(account, version);
    if (id === 'purchasePlan') this.charges.push({ key: call.headers['idempotency-key'] ?? '', at: performance.now() });
    this.#send(response, id, version);
  }

  #send(response: ServerResponse, id: OperationId, version: number): void {
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(bodyOf(id, version));
  }
}

const headersOf = ({ headers }: IncomingMessage) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

/** Gateways wait for a second: some reads and writes take longer, and are done all the same. */
const readMs = () => (Math.random() < 0.02 ? 300 : 5 * Math.random());
const writeMs = () => (Math.random() < 0.03 ? 900 + 1_500 * Math.random() : 60 * Math.random());
