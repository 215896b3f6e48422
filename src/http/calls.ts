import type { Context, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { GatewayError } from '../core/errors.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { valueOf } from '../core/json.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Read } from '../upstream/read.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Method, Operation, ParamsOf, ValueOf } from '../upstream/operation.ts';
import { formOf, joined } from '../upstream/path.ts';
import { endRequest } from './access-log.ts';
import { addRequestHeaders, NO_STORE, problem, reply } from './reply.ts';
import { beginAt } from './begin.ts';
import { checkIdempotencyKey } from './body.ts';
import type { Cors } from './cors.ts';
import type { HonoRequest, Env, HttpDeps } from './request.ts';
import type { Sessions } from './session.ts';

type ReadRow = Operation & { readonly at: `GET /${string}` };
type WriteRow = Operation & { readonly at: `${Exclude<Method, 'GET'>} /${string}` };

/** The input of a call. Values of the query are sent as they are written. */
export interface CallInput {
  /** A value for each parameter of the row's path. */
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
}

/** It may be left out where the row's path has no parameters. */
type Given<
  O extends Operation,
  Input extends CallInput,
  Own = ParamsOf<O, string | number> & Omit<Input, 'params'>,
> = object extends Own ? [input?: Own] : [input: Own];

export interface WriteInput extends CallInput {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Used instead of the client's `Idempotency-Key`: a handler that writes twice needs two keys. */
  readonly key?: string;
}

/** A good answer of the upstream, as a host's handler gets it. */
export interface CallAnswer<Value> {
  readonly status: number;
  /** As the upstream sent it; null if it has no body. */
  readonly text: string | null;
  /** Parses the text anew each time. Integers that JavaScript would round stay text. */
  json(): Value;
}

/** The variables of a host's context behind `gateway.request`. */
export interface HostEnv {
  Variables: { portico: Calls };
}

export interface CallTools extends HttpDeps {
  readonly gateway: Gateway;
  readonly sessions?: Sessions | undefined;
  readonly cors?: Cors | undefined;
}

/**
 * The reads and writes of a host's handler, for the client whose request it answers. They use the client's credential or
 * session, and the gateway's cache, limit and errors. All reads of a request count as one in the limit.
 */
export class Calls {
  readonly #context: Context<Env>;
  readonly #request: HonoRequest;
  readonly #tools: CallTools;
  #entered: MaybePromise<void> | undefined;
  /** The snapshot of the first call, which counts the request. If the first call is refused, all others are. */
  #counted: Promise<Snapshot> | undefined;
  /** Whether something of the account may be in the answer. */
  isUsed = false;
  readonly sessions: Sessions | undefined;

  constructor(c: Context<Env>, request: HonoRequest, tools: CallTools) {
    this.#context = c;
    this.#request = request;
    this.#tools = tools;
    this.sessions = tools.sessions;
  }

  /**
   * A GET of the upstream, through the cache. Each one asks the store anew, so none answers with a copy from before a write.
   * @throws GatewayError, of which Hono's own `onError` makes the problem that a client of the gateway would get
   */
  read<O extends ReadRow>(row: O, ...[input]: Given<O, CallInput>): Promise<CallAnswer<ValueOf<O>>> {
    return this.#withResponse(async () => {
      const operation = this.#own(row);
      if (operation.method !== 'GET') throw new TypeError(`the row \`${row.id}\` is no read`);
      const { gateway } = this.#tools;
      const { id, query } = inputOf(operation, input);
      const read = gateway.rows.of(operation).read(id, query);
      await this.#enter();
      const snapshot = await this.#admit([read]);
      const { status, entry } = await gateway.read(read, this.#request, snapshot);
      return answerOf<O>(status, entry && withOrigin(entry, this.#request));
    });
  }

  /**
   * A write, sent once.
   * @throws GatewayError as `read`
   */
  write<O extends WriteRow>(row: O, ...[input]: Given<O, WriteInput>): Promise<CallAnswer<ValueOf<O>>> {
    return this.#withResponse(async () => {
      const operation = this.#own(row);
      if (operation.method === 'GET') throw new TypeError(`the row \`${row.id}\` is no write`);
      const { key = this.#request.header('idempotency-key'), body }: WriteInput = input ?? {};
      if (key !== undefined && typeof key !== 'string') throw new TypeError('`key` is no text');
      const sent = { ...inputOf(operation, input), ...(body !== undefined && { body: JSON.stringify(body) }) };
      await this.#enter();
      if (operation.credential !== 'none') await (this.#counted ?? this.#admit([]));
      checkIdempotencyKey(key);
      const { writes } = this.#tools.gateway;
      const { status, text } = await writes.write(this.#request, operation, async () => sent, key);
      return answerOf<O>(status, text);
    });
  }

  /** The row with this name in the gateway's own table. @throws TypeError if there is none */
  #own(row: Operation): Operation {
    const own = this.#tools.table.operations.find(({ id }) => id === row.id);
    if (own?.at === row.at) return own;
    throw new TypeError(`the row \`${row.id}\` at ${row.at} is not among the rows of this gateway`);
  }

  /** The first call counts the request. Calls that come meanwhile wait for the first, or they would be counted too. */
  async #admit(reads: readonly Read[]): Promise<Snapshot> {
    const ask = async () => this.#tools.gateway.admit(this.#request, reads);
    if (!this.#counted) return (this.#counted = ask());
    await this.#counted;
    return ask();
  }

  /** Opens the session of the request's cookie, once. */
  #enter(): MaybePromise<void> {
    this.isUsed = true;
    return (this.#entered ??= this.#tools.sessions?.enter(this.#request));
  }

  /** Runs a call. Its error has a `getResponse`, which Hono's own `onError` calls for the answer. */
  #withResponse<T>(run: () => Promise<T>): Promise<T> {
    const result = run().catch((error: unknown): never => {
      throw withResponse(error, (own) => this.#problemOf(own));
    });
    result.catch(() => undefined); // a call that no handler waits for ends no process
    return result;
  }

  /** Another gateway's middleware may have come after ours. */
  #problemOf(error: Error): Response {
    this.#context.set('porticoRequest', this.#request);
    return problem(error, this.#context) as Response;
  }
}

/** A new error, since several requests may wait for the call that failed. */
function withResponse(error: unknown, responseOf: (answered: Error) => Response): Error {
  if (error instanceof TypeError) return error; // a mistake of the handler's author
  const own = error instanceof GatewayError ? error.with({}) : new Error('the call has ended', { cause: error });
  const answered = error instanceof Error && !(error instanceof GatewayError) ? error : own;
  return Object.assign(own, { getResponse: () => responseOf(answered) });
}

/**
 * The values of the path's parameters and the query, as texts.
 * @throws GatewayError `not_found` for a value that is not of the row's form; TypeError for a wrong use
 */
function inputOf({ id: row, params: forms, path }: Operation, { params = {}, query = {} }: CallInput = {}) {
  const strange = Object.keys(params).find((name) => !Object.hasOwn(forms, name));
  if (strange !== undefined) throw new TypeError(`the row \`${row}\` takes no \`${strange}\`: its path is ${path}`);
  const id = joined(Object.keys(forms), (name) => {
    const value = params[name];
    if (value === undefined) throw new TypeError(`the row \`${row}\` needs a \`${name}\`: its path is ${path}`);
    if (typeof value === 'number' && !Number.isSafeInteger(value))
      throw new TypeError(
        `\`${name}\` of \`${row}\` is no whole number that JavaScript keeps exactly: give it as text`,
      );
    if (!formOf(forms[name] ?? 'digits').test(String(value))) throw GatewayError.of('not_found');
    return String(value);
  });
  const pairs = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return { id, query: new URLSearchParams(pairs).toString() };
}

const answerOf = <O extends Operation>(status: number, text: string | null): CallAnswer<ValueOf<O>> => ({
  status,
  text,
  json: () => (text === null ? null : valueOf(text)) as ValueOf<O>,
});

/**
 * Middleware for handlers of the host's: gives them `c.var.portico`, writes their line in the log, and adds the headers that
 * tell of a request. An answer with something of an account is not to be kept, unless the handler says otherwise.
 */
export const callsOf =
  (tools: CallTools): MiddlewareHandler<HostEnv> =>
  async (host, next) => {
    const c = host as unknown as Context<Env>; // with variables of ours besides
    const route = {
      get name() {
        return routePath(host); // the pattern of the last handler that ran
      },
    };
    const outer = c.get('porticoRequest') as HonoRequest | undefined;
    const request = beginAt(c, route, tools);
    const calls = new Calls(c, request, tools);
    host.set('portico', calls);
    try {
      const preflight = tools.cors?.preflight(request);
      if (preflight) host.res = reply(c, request, preflight);
      else await next();
      // A request that is ended already was one of our own routes', or has become a problem.
      if (isOpen(c, request) && isAnswered(host.error)) host.res = problem(host.error, c) as Response;
      if (isOpen(c, request) && !preflight) await finish(host, request, calls);
    } finally {
      if (isOpen(c, request)) endRequest(request, host.finalized ? host.res.status : FAULT);
      else request.end();
      if (outer && c.get('porticoRequest') === request) c.set('porticoRequest', outer);
    }
  };

/** Whether the handler itself threw the error, and Hono's default `onError` answered it. What a host's own answers stays. */
const isAnswered = (error: Error | undefined): error is GatewayError =>
  error instanceof GatewayError && error.isAnswered;

const isOpen = (c: Context<Env>, request: HonoRequest) => c.get('porticoRequest') === request && !request.isEnded;

const FAULT = 500;

async function finish(c: Context<HostEnv>, request: HonoRequest, { isUsed, sessions }: Calls): Promise<void> {
  // A handler that streams may call later, so the headers of the request count too.
  const isOfAccount = isUsed || request.header('authorization') !== undefined || request.header('cookie') !== undefined;
  if (isOfAccount && !c.res.headers.has('Cache-Control')) c.header('Cache-Control', NO_STORE['Cache-Control']);
  for (const [name, value] of Object.entries(addRequestHeaders({}, request, c.res)))
    c.header(name, value, { append: name === 'Vary' });
  // A cache that others share would give the cookie to them, and a stream may outlive the session.
  const isPrivate = /(^|[\s,])(no-store|private)($|[\s,=])/.test(c.res.headers.get('Cache-Control') ?? '');
  const isJson = c.res.headers.get('Content-Type')?.startsWith('application/json');
  if (sessions && isPrivate && isJson) c.res = await sessions.renew(request, c.res);
}
