import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Method, Operation } from '../../src/upstream/operation.ts';
import type { Table } from '../../src/upstream/table.ts';
import {
  type BodyFlaw,
  noAnswer,
  type RawAnswer,
  type Transport,
  type UpstreamRequest,
} from '../../src/upstream/transport.ts';
import { accountTable, type OperationId } from './account-api.ts';
import { exampleAnswer } from './examples.ts';

/** A call that reached the upstream. */
export interface Call {
  readonly id: OperationId | undefined;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** With the query, as it was sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly token: string;
  /** Resolves when the gateway has given the call up. */
  readonly left: Promise<void>;
}

/** What the upstream does with a call: an answer, a connection that breaks, or nothing for as long as it is waited for. */
export type Reply = RawAnswer | Error | 'hang' | ((call: Call) => Reply);

/** A string is JSON text, sent as it is; anything else is a value. */
export const answer = (status: number, body: unknown = '', headers: RawAnswer['headers'] = {}): RawAnswer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: { text: typeof body === 'string' ? body : JSON.stringify(body) },
});
/** The connection breaks: the call may have happened. */
export const reset = (): Error => noAnswer('broken', 'reset');
/** No connection: the call has not happened. On sockets it is a reset, which nobody can tell from this: only in process. */
export const refused = (): Error => noAnswer('no_connection', 'refused');
export const hang = (): 'hang' => 'hang';
/** Whatever else a transport says where there is no answer, or none that can be read. */
export { noAnswer } from '../../src/upstream/transport.ts';
export const flawed = (flaw: BodyFlaw): RawAnswer => ({ status: 200, headers: {}, body: { flaw } });

/** The next call of an operation, which waits for the test. */
export interface Held {
  /** Resolves with the call once it has come. */
  readonly call: Promise<Call>;
  /** Without a reply it is the good one: a read's is of when the call came, a write is carried out now. */
  readonly release: (reply?: Reply) => void;
}

interface Script {
  readonly id: OperationId;
  readonly reply: Reply | Promise<Reply | undefined>;
  readonly arrived?: (call: Call) => void;
}

/**
 * The upstream, in this process or behind a socket. Answers are good and carry the version of the account, which each good
 * write raises; a test scripts all others. It counts, and never sleeps.
 */
export class Upstream {
  readonly calls: Call[] = [];
  #versions = new Map<string, number>();
  #scripts: Script[] = [];
  #watchers: (() => void)[] = [];
  readonly #table: Table;

  /** `table`: of another API than the account's. */
  constructor(table: Table = accountTable) {
    this.#table = table;
  }

  /** The next calls of an operation get these, one each; later ones are good. */
  next(id: OperationId, ...replies: Reply[]): void {
    for (const reply of replies) this.#scripts.push({ id, reply });
  }

  hold(id: OperationId): Held {
    const arrived = Promise.withResolvers<Call>();
    const released = Promise.withResolvers<Reply | undefined>();
    this.#scripts.push({ id, reply: released.promise, arrived: arrived.resolve });
    return { call: arrived.promise, release: released.resolve };
  }

  /** The account is changed, and nobody tells the gateway. */
  change(token: string): void {
    this.#versions.set(token, this.versionOf(token) + 1);
  }

  versionOf(token: string): number {
    return this.#versions.get(token) ?? 1;
  }

  callsTo(id: OperationId): readonly Call[] {
    return this.calls.filter((call) => call.id === id);
  }

  callsOf(token: string, id?: OperationId): readonly Call[] {
    return this.calls.filter((call) => call.token === token && (id === undefined || call.id === id));
  }

  /** Resolves once so many calls of the operation have come, those before now included. */
  async arrived(id: OperationId, many = 1): Promise<void> {
    while (this.callsTo(id).length < many) await new Promise<void>((resolve) => void this.#watchers.push(resolve));
  }

  /** Good answers again. */
  clear(): void {
    this.#scripts = [];
  }

  /** What is wrong with the calls so far: of no operation, or scripted and not come. */
  complaints(): readonly string[] {
    const strangers = this.calls.filter(({ id }) => id === undefined);
    return [
      ...strangers.map(({ method, target }) => `a call of no operation: ${method} ${target}`),
      ...this.#scripts.map(({ id }) => `a reply that nobody asked for: ${id}`),
    ];
  }

  readonly transport = transportBy(async (request) => {
    request.beforeFirstByte?.();
    const left = Promise.withResolvers<never>();
    left.promise.catch(() => undefined);
    const leave = () => left.reject(request.signal.reason as Error);
    if (request.signal.aborted) leave();
    request.signal.addEventListener('abort', leave);
    const said = await Promise.race([
      this.#answer(
        request,
        left.promise.catch(() => undefined),
      ),
      left.promise,
    ]);
    if (said === 'hang') return left.promise;
    if (said instanceof Error) throw said;
    return 'text' in said.body && Buffer.byteLength(said.body.text) > request.maxBodyBytes
      ? { ...said, body: { flaw: 'too_large' } as const }
      : said;
  });

  /** Behind a socket of its own, until `close`. */
  async listen(): Promise<{ readonly url: string; close(): Promise<void> }> {
    const server = createServer((request, response) => {
      void (async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const { method = '', url: path = '', rawHeaders: headers, socket } = request;
        const left = once(response, 'close').then(() => undefined);
        const said = await this.#answer({ method, path, headers, body: Buffer.concat(chunks).toString() }, left);
        if (said === 'hang') return;
        if (said instanceof Error) {
          socket.resetAndDestroy();
          return;
        }
        const known = Object.entries(said.headers).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, value]],
        );
        response.writeHead(said.status, Object.fromEntries(known) as Record<string, string | string[]>);
        response.end('text' in said.body ? said.body.text : '');
      })().catch(() => undefined);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      async close() {
        server.closeAllConnections();
        await new Promise((resolve) => void server.close(resolve));
      },
    };
  }

  async #answer(
    { method, path: target, headers, body = '' }: Pick<UpstreamRequest, 'method' | 'path' | 'headers' | 'body'>,
    left: Promise<void>,
  ): Promise<RawAnswer | Error | 'hang'> {
    const named = pairsOf(headers);
    const [path = ''] = target.split('?');
    const row = this.#table.at(path)?.methods.get(method as Method);
    const id = row?.id as OperationId | undefined;
    const token = (named['authorization'] ?? '').replace(/^Token /, '');
    const call: Call = { id, method, path, target, headers: named, body, token, left };
    this.calls.push(call);
    const at = this.#scripts.findIndex((one) => one.id === id);
    const [script] = at < 0 ? [] : this.#scripts.splice(at, 1);
    const good = () => this.#good(call, row);
    const early = method === 'GET' ? good() : undefined;
    script?.arrived?.(call);
    for (const look of this.#watchers.splice(0)) look();
    let reply: Reply | undefined = await script?.reply;
    if (typeof reply === 'function') reply = reply(call);
    return (reply as Exclude<Reply, (call: Call) => Reply> | undefined) ?? early ?? good();
  }

  #good({ method, token }: Call, row: Operation | undefined): RawAnswer {
    if (row === undefined) return answer(404, { detail: 'No such operation.' });
    if (method !== 'GET') this.change(token);
    if (row.answer === null) return answer(204);
    return answer(200, exampleAnswer(row).replace('{', `{"x_version":${this.versionOf(token)},`));
  }
}

/** Answers by a function, whose signal is aborted when the exchange is. */
export function transportBy(
  answerTo: (request: UpstreamRequest & { readonly signal: AbortSignal }) => Promise<RawAnswer>,
): Transport {
  return (request) => {
    const controller = new AbortController();
    return {
      answer: answerTo({ ...request, signal: controller.signal }),
      abort: (reason) => controller.abort(reason),
    };
  };
}

/** Of alternating names and values; names in lower case. */
export function pairsOf(headers: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; at < headers.length; at += 2) found[headers[at]!.toLowerCase()] = headers[at + 1]!;
  return found;
}
