import { recordOf } from '../support/pairs.ts';
import { matchPath, type OperationId } from '../support/account-api.ts';
import type { Method } from '../../src/upstream/operation.ts';
import { noAnswer, type RawAnswer, type Transport, type UpstreamRequest } from '../../src/upstream/transport.ts';
import { rowOf } from '../support/table.ts';

/** How a held call ends. */
export type Outcome = 'good' | 'failed' | 'html' | 'broken' | 'unauthorized' | 'forbidden' | 'gone' | 'limited';

/** One thing of one account. */
export interface Thing {
  readonly account: string;
  readonly operation: OperationId;
  readonly id: string;
}

/** A thing as it was at one moment; moments are numbers that grow with each thing that happens. */
export interface Mark extends Thing {
  readonly at: number;
}

export interface HeldCall extends Thing {
  readonly requestId: string;
  end(outcome: Outcome): void;
}

const MARK = /"x_mark":"([^|"]+)\|([^|"]+)\|([^|"]*)\|(\d+)"/g;

/** Every mark in an answer, however composed. */
export const marksIn = (text: string): Mark[] =>
  // Operations are those that `answerOf` wrote.
  [...text.matchAll(MARK)].map(([, account = '', operation, id = '', at]) => ({
    account,
    operation: operation as OperationId,
    id,
    at: Number(at),
  }));

const isSameId = (one: string, other: string) => one.replace(/^0+(?=\d)/, '') === other.replace(/^0+(?=\d)/, '');

/** Whether a write changes what a read shows; that the rows say what contract.md does is tested elsewhere. */
export const invalidates = (write: Thing, read: Thing): boolean => {
  const { group } = rowOf(read.operation);
  const changes = (rowOf(write.operation).invalidates ?? []).some((one) => {
    if (typeof one === 'string') return one === 'everything' || one === group;
    // A write that names no item may have changed any.
    return one.item === group && (write.id === '' || isSameId(write.id, read.id));
  });
  return changes && write.account === read.account;
};

const ANSWERS: Readonly<Record<Exclude<Outcome, 'good' | 'broken'>, RawAnswer>> = {
  failed: { status: 503, headers: {}, body: { text: '' } },
  html: { status: 200, headers: { 'content-type': 'text/html' }, body: { text: '<html>' } },
  unauthorized: { status: 401, headers: {}, body: { text: '{"detail":"No."}' } },
  forbidden: { status: 403, headers: {}, body: { text: '{"detail":"No.","code":"account_suspended"}' } },
  gone: { status: 404, headers: {}, body: { text: '{"detail":"Not found."}' } },
  limited: { status: 429, headers: { 'retry-after': '1' }, body: { text: '' } },
};

const PADDING = 'x'.repeat(200);

/**
 * An upstream that says of everything when it said so, and whose. Every call is held until it is ended; what a read
 * will show is fixed when it arrives, which is the worst that a slow answer can do.
 */
export class HeldUpstream {
  /** Oldest first. */
  readonly held: HeldCall[] = [];
  /** When the calls of a request ended, whoever ended them. */
  readonly endedAt = new Map<string, number>();
  readonly unexpected: string[] = [];
  #now = 0;
  readonly #accountOf: (token: string) => string | undefined;
  readonly #versions = new Map<string, number>();

  constructor(accountOf: (token: string) => string | undefined) {
    this.#accountOf = accountOf;
  }

  /** The next moment. */
  tick(): number {
    return ++this.#now;
  }

  readonly transport: Transport = (request) => {
    const { method, path, signal } = request;
    const headers = recordOf(request.headers);
    const match = matchPath(path.split('?')[0] ?? '');
    const operation = match?.methods.get(method as Method)?.id as OperationId | undefined;
    const account = this.#accountOf((headers['authorization'] ?? '').replace('Token ', ''));
    if (!operation || account === undefined) {
      this.unexpected.push(`${method} ${path}`);
      return Promise.reject(noAnswer('broken', 'reset'));
    }
    const good = this.#goodAnswer({ account, operation, id: match?.id ?? '' }, request);
    const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
    const over = () => {
      this.endedAt.set(call.requestId, this.tick());
      this.held.splice(this.held.indexOf(call), 1);
      signal.removeEventListener('abort', leave);
    };
    const leave = () => {
      over();
      reject(signal.reason);
    };
    const call: HeldCall = {
      account,
      operation,
      id: match?.id ?? '',
      requestId: headers['x-request-id'] ?? '',
      end(outcome) {
        over();
        if (outcome === 'broken') reject(noAnswer('broken', 'reset'));
        else resolve(outcome === 'good' ? good : ANSWERS[outcome]);
      },
    };
    this.held.push(call);
    signal.addEventListener('abort', leave);
    return promise;
  };

  #goodAnswer(thing: Thing, { method, headers: pairs }: UpstreamRequest): RawAnswer {
    const headers = recordOf(pairs);
    const { account, operation, id } = thing;
    const version = this.#versions.get(account) ?? 1;
    if (method !== 'GET') {
      this.#versions.set(account, version + 1);
      return { status: 200, headers: {}, body: { text: '{}' } };
    }
    const etag = `"${account}-${version}"`;
    if (headers['if-none-match'] === etag) return { status: 304, headers: { etag }, body: { text: '' } };
    const mark = `"x_mark":"${account}|${operation}|${id}|${this.tick()}"`;
    const results = rowOf(operation).paged ? `,"results":[{"id":7,${mark}}]` : '';
    const body = `{${mark},"id":7,"payment_method":1071,"padding":"${PADDING}"${results}}`;
    return { status: 200, headers: { etag }, body: { text: body } };
  }
}
