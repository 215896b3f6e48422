import type { Config } from '../config.ts';
import { base64Url, bytesOfBase64Url, Sealing } from '../core/crypto.ts';
import { GatewayError } from '../core/errors.ts';
import { isAllowed } from '../core/address.ts';
import { whenDone, type Clock, type MakeOpener, type MaybePromise } from '../core/runtime.ts';
import { hasJsonType } from './body.ts';
import { isOwn } from './cors.ts';
import type { Session } from '../core/request.ts';
import type { HonoRequest } from './request.ts';

const COOKIE = '__Host-Http-portico';
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict';
/** Ends the session in the browser. */
export const CLEARED = `${COOKIE}=; Max-Age=0; ${ATTRIBUTES}`;

const DAY_SECONDS = 86_400;
const LIFE_SECONDS = 7 * DAY_SECONDS;
const MOST_SECONDS = 30 * DAY_SECONDS;
/** The longest cookie that browsers keep, in bytes with its name. */
const MAX_COOKIE = 4_096;
/** The longest token, in bytes, that fits into a cookie when it is sealed and encoded. */
export const MAX_TOKEN = 2_900;

const refused = (detail: string) => GatewayError.of('unauthenticated', { detail });

interface SessionDeps {
  readonly config: Config;
  /** The normalized base URL. */
  readonly upstream: URL;
  readonly clock: Clock;
  readonly makeOpener?: MakeOpener | undefined;
  /** Whether the store says that a session still lives. */
  readonly isLiving: (request: HonoRequest, session: Session) => Promise<boolean>;
}

/** Sessions for browsers, each in a sealed cookie (`contract.md` section 8). */
export class Sessions {
  readonly #sealing: Sealing;
  readonly #openNow: ReturnType<MakeOpener> | undefined;
  readonly #deps: SessionDeps;

  /** The cookies can be opened only by a gateway to the same upstream. */
  constructor(deps: SessionDeps) {
    const { secrets } = deps.config;
    const purpose = `portico session 2 ${deps.upstream.href}`;
    this.#sealing = new Sealing(secrets, purpose);
    this.#openNow = deps.makeOpener?.(secrets, purpose);
    this.#deps = deps;
  }

  /** Seconds since 1970. */
  #now(): number {
    return Math.floor(this.#deps.clock.wall() / 1000);
  }

  /** A session that begins now. */
  begin(id: string, epoch: number, token: string): Session {
    const now = this.#now();
    return { id, epoch, token, begunAt: now, expiresAt: now + LIFE_SECONDS };
  }

  /**
   * Opens the session of a request that has its cookie, and sets `request.session`.
   * @throws GatewayError `unauthenticated`, `origin_rejected`, `unsupported_media_type`
   */
  enter(request: HonoRequest): MaybePromise<void> {
    const value = this.cookieIn(request);
    return value === undefined ? undefined : whenDone(this.open(value), (session) => void (request.session = session));
  }

  /** Prolongs the request's session, at most once a day, if the answer is good and no stream. Returns the response. */
  renew(request: HonoRequest, response: Response): MaybePromise<Response> {
    const { session, isStream } = request;
    if (!session || isStream || response.status >= 300 || this.#latest(session) - session.expiresAt < DAY_SECONDS)
      return response;
    return this.#renewal(request, session).then((cookie) => {
      if (cookie !== undefined) response.headers.append('Set-Cookie', cookie); // a host may have set one too
      return response;
    });
  }

  /**
   * The value of a request's session cookie; undefined without one. Beside `Authorization` the cookie is not looked at.
   * @throws GatewayError `unauthenticated` if there are two, `origin_rejected`, `unsupported_media_type`
   */
  cookieIn(request: HonoRequest): string | undefined {
    if (request.header('authorization') !== undefined) return undefined;
    const value = sessionCookieOf(request.header('cookie'));
    if (value === undefined) return undefined;
    checkOrigin(request);
    if (announcesBody(request) && !hasJsonType(request)) throw GatewayError.of('unsupported_media_type');
    return value;
  }

  /** The session that a browser had before it begins a new one; undefined if there is none that can be opened. */
  async former(request: HonoRequest): Promise<Session | undefined> {
    if (request.header('authorization') !== undefined) return undefined;
    try {
      const value = sessionCookieOf(request.header('cookie'));
      return value === undefined ? undefined : await this.open(value);
    } catch {
      return undefined;
    }
  }

  /**
   * A `Set-Cookie` that gives a session more time; undefined if it may have ended while the request was under way. The
   * store is asked last: a sign-out that is over by then is not undone in the browser.
   */
  async #renewal(request: HonoRequest, session: Session): Promise<string | undefined> {
    const cookie = await this.cookieOf({ ...session, expiresAt: this.#latest(session) });
    return (await this.#deps.isLiving(request, session)) ? cookie : undefined;
  }

  /** Until when a session may be prolonged, in seconds since 1970. */
  #latest({ begunAt }: Session): number {
    return Math.min(this.#now() + LIFE_SECONDS, begunAt + MOST_SECONDS);
  }

  /** A `Set-Cookie`. */
  async cookieOf({ id, epoch, begunAt, expiresAt, token }: Session): Promise<string> {
    const sealed = await this.#sealing.seal(COOKIE, `${id} ${epoch} ${begunAt} ${expiresAt} ${token}`);
    return `${COOKIE}=${base64Url(sealed.buffer)}; Max-Age=${expiresAt - this.#now()}; ${ATTRIBUTES}`;
  }

  /** @throws GatewayError `unauthenticated` if the cookie was not sealed by us, or has expired */
  open(value: string): MaybePromise<Session> {
    return whenDone(value.length > MAX_COOKIE ? undefined : this.#textOf(value), (text) => this.#sessionIn(text));
  }

  #sessionIn(text: string | undefined): Session {
    const [id = '', epoch = '', begunAt, expiresAt, token = ''] = text?.split(' ') ?? [];
    const session = { id, epoch: Number(epoch), token, begunAt: Number(begunAt), expiresAt: Number(expiresAt) };
    if (text === undefined) throw refused('The session cookie cannot be opened. Sign in again.');
    if (Number.isNaN(session.epoch)) throw refused('The session is from an earlier release. Sign in again.');
    if (session.expiresAt <= this.#now()) throw refused('The session has expired. Sign in again.');
    return session;
  }

  #textOf(value: string): MaybePromise<string | undefined> {
    if (this.#openNow) return this.#openNow(COOKIE, value);
    const bytes = bytesOfBase64Url(value);
    return bytes && this.#sealing.open(COOKIE, bytes);
  }
}

/**
 * Refuses a request that another site may have made in the user's name.
 * @throws GatewayError `origin_rejected`
 */
export function checkOrigin(request: HonoRequest): void {
  if (!isTrusted(request)) throw GatewayError.of('origin_rejected');
}

function isTrusted(request: HonoRequest): boolean {
  const { config } = request.tools;
  const origin = request.header('origin');
  const site = request.header('sec-fetch-site');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (origin === 'null') return false;
  if (site === 'same-origin') return true;
  if (site === 'none') return isRead;
  const isListed = origin !== undefined && isAllowed(config, origin);
  if (site === 'same-site' || site === 'cross-site') return isListed;
  if (site !== undefined) return false;
  return origin === undefined ? isRead : isListed || isOwn(origin, request, config);
}

/** Whether the head announces a body: on Workers a request without a body may have an empty one. */
const announcesBody = (request: HonoRequest) =>
  (request.header('content-length') ?? '0') !== '0' || request.header('transfer-encoding') !== undefined;

const isBlank = (char: string | undefined) => char === ' ' || char === '\t';

/** The text without blanks around it. `trim` would take other characters too. */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (isBlank(text[start])) start++;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

/**
 * The value of our cookie; undefined if there is none. Only a space or a tab may stand around a name.
 * @throws GatewayError `unauthenticated` if there are two
 */
function sessionCookieOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const values = header
    .split(';')
    .map(withoutBlanks)
    .filter((pair) => pair.startsWith(`${COOKIE}=`))
    .map((pair) => pair.slice(COOKIE.length + 1));
  if (values.length > 1) throw refused('There are two session cookies. Sign in again.');
  return values[0];
}
