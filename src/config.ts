import * as z from 'zod/mini';
import { isOrigin } from './core/address.ts';
import { expectedHttpUrl, httpUrlOf } from './core/http-url.ts';
import { isPlainObject, parsedJson } from './core/json.ts';
import { type CachePolicy, MOST_SECONDS, type Operation } from './upstream/operation.ts';
import type { Table } from './upstream/table.ts';

const plainText = z.string('a text, not a list, null or a binding of another kind');

/** Says what was expected in the place of a text, or of a part of it. */
type Refuse = (expected: string) => undefined;

/** What `read` makes of a text, which it may refuse. */
const reading = <T>(read: (text: string, refuse: Refuse) => T | undefined) =>
  z.pipe(
    plainText,
    z.transform(
      (text: string, { issues }) =>
        read(text, (message) => void issues.push({ code: 'custom', message, input: text })) as T,
    ),
  );

/** What `read` makes of a text; undefined if that is not what was expected. */
export const readAs = <T>(expected: string | ((text: string) => string), read: (text: string) => T | undefined) =>
  reading((text, refuse) => read(text) ?? refuse(typeof expected === 'string' ? expected : expected(text)));

const integer = (least: number, most: number) =>
  readAs(`an integer from ${least} to ${most}`, (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  });
export const integerVariable = (least: number, most: number, otherwise: number) =>
  z._default(integer(least, most), otherwise);
const flag = readAs('true or false', (text) => text === 'true' || (text === 'false' ? false : undefined));
const portVariable = (otherwise: number) => integerVariable(0, 65_535, otherwise);
const msVariable = (otherwise: number) => integerVariable(1, 600_000, otherwise);

const HOST = /^(?:[\w.-]+|[\da-f]*:[\da-f:.]*(?:%[\w.-]+)?)$/i;
const hostVariable = z._default(plainText.check(z.regex(HOST, 'a name or an IP address, without a port')), '127.0.0.1');

const baseUrl = readAs(expectedHttpUrl, httpUrlOf).check(
  z.refine((url) => url.search === '', { error: 'a URL without a query', abort: true }),
  z.refine((url) => url.hash === '', { error: 'a URL without a fragment', abort: true }),
  z.refine((url) => url.username === '' && url.password === '', 'a URL without a user name and password'),
);

/** Without a slash at its end. */
const publicUrl = z.pipe(
  baseUrl,
  z.transform(({ origin, pathname }) => (pathname === '/' ? origin : origin + pathname)),
);

/** The policies of the rows, overridden by the operator's. */
const cachePolicy = (operations: readonly Operation[]) =>
  reading((text, refuse) => {
    const given = parsedJson(text);
    if (!isPlainObject(given)) return refuse('a JSON object');
    const policies = new Map(operations.map(({ id, cache }) => [id, cache]));
    for (const [id, override] of Object.entries(given)) {
      const cache = policies.get(id);
      const refuseIt: Refuse = (expected) => refuse(id + expected);
      if (cache) policies.set(id, overridden(cache, override, refuseIt));
      else if (policies.has(id)) refuse(`no policy of ${id}, whose answers are never cached`);
      else refuse(`only ids of operations, not ${JSON.stringify(id)}`);
    }
    return ({ id }: Operation) => policies.get(id);
  });

const FIELDS = ['fresh', 'stale', 'on_error'];

/** Undefined if nothing is cached. */
function overridden(cache: CachePolicy, override: unknown, refuse: Refuse): CachePolicy | undefined {
  if (override === false) return undefined;
  if (!isPlainObject(override)) return refuse(' to be false, or an object with fresh, stale or on_error');
  for (const [field, seconds] of Object.entries(override)) {
    const isGood = typeof seconds === 'number' && seconds >= 0 && seconds <= MOST_SECONDS;
    if (!FIELDS.includes(field)) refuse(` to have fresh, stale and on_error only, not ${JSON.stringify(field)}`);
    else if (!isGood) refuse(`.${field} to be a number of seconds from 0 to ${MOST_SECONDS}`);
  }
  const { on_error: onError = cache.onError, ...others } = override;
  return { ...cache, ...others, onError } as CachePolicy;
}

/** Comma-separated. `expected` says of a bad entry what it should be. */
const listOf = (expected: (entry: string, entries: readonly string[]) => string | undefined) =>
  reading((text, refuse) => {
    const entries = text.split(',').map((part) => part.trim());
    for (const [index, entry] of entries.entries()) {
      if (entry === '') return refuse(`entry ${index + 1} not to be empty; is there a comma too many?`);
      const other = expected(entry, entries);
      if (other !== undefined) return refuse(`entry ${index + 1} to be ${other}`);
    }
    return entries;
  });

const LEAST_LENGTH = 32;

export const A_SECRET = `a secret of ${LEAST_LENGTH} characters or more`;

/** Anybody can read them in this repository. */
const PUBLISHED = ['for-development-only-and-known-to-all', 'for-this-machine-only-0123456789abcdef'];

/** What was expected in the place of a secret that cannot be used. In production one that is published cannot be used either. */
export function expectedSecret(secret: string, isInProduction: boolean): string | undefined {
  if (isInProduction && PUBLISHED.includes(secret))
    return 'a secret of your own, since NODE_ENV is production: this one is public';
  return secret.length < LEAST_LENGTH ? A_SECRET : undefined;
}

/** An IP address or a CIDR. */
export const addresses = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]);

const addressList = listOf((entry) =>
  addresses.safeParse(entry).success ? undefined : 'an IP address or a CIDR such as 10.0.0.0/8',
);

const ANY_ORIGIN =
  'scheme://host[:port] of a page, as browsers send it, in lower case, such as https://app.example (no wildcards; or * alone)';

const originList = listOf((entry, { length }) => {
  if (isOrigin(entry) || (entry === '*' && length === 1)) return undefined;
  const meant = URL.parse(entry)?.origin ?? '';
  return isOrigin(meant) ? meant : ANY_ORIGIN;
});

const LEAST_STATUS = new Map([
  ['all', 0],
  ['errors', 400],
  ['failures', 500],
]);

/** The least status of requests that have their line in the log, and the share of all others. */
const logRequests = readAs('all, errors, failures, or a share from 0 to 1 such as 0.01', (text) => {
  const from = LEAST_STATUS.get(text);
  if (from !== undefined) return { from, share: 0 };
  return /^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? { from: 500, share: Number(text) } : undefined;
});

export const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const logLevel = z.pipe(plainText, z.enum(LEVELS, 'trace, debug, info, warn, error, fatal or silent'));

/** The variables by the names that they have in `Config`: `upstreamBaseUrl` is `UPSTREAM_BASE_URL`. */
const variablesOf = (operations: readonly Operation[], isInProduction: boolean) =>
  z.object({
    host: hostVariable,
    port: portVariable(8787),
    adminHost: hostVariable,
    adminPort: portVariable(8788),
    upstreamBaseUrl: z.optional(baseUrl),
    upstreamTimeoutMs: msVariable(5000),
    requestTimeoutMs: msVariable(10_000),
    upstreamMaxConnections: integerVariable(1, 65_535, 256),
    upstreamMaxBodyBytes: integerVariable(1, 268_435_456, 5_242_880),
    maxBodyBytes: integerVariable(1, 16_777_216, 65_536),
    publicUrl: z.optional(publicUrl),
    cacheMaxBytes: integerVariable(0, 17_179_869_184, 134_217_728),
    cachePolicy: z.prefault(cachePolicy(operations), '{}'),
    /** The first one seals, each can open, the last one names. One may be both first and last, with a new one between. */
    secrets: z._default(
      listOf((secret) => expectedSecret(secret, isInProduction)),
      [],
    ),
    /** `*` alone allows all. */
    allowedOrigins: z._default(originList, []),
    rateLimitPerMinute: integerVariable(0, 1_000_000_000, 600),
    /** Addresses and CIDRs. */
    trustedProxies: z._default(addressList, []),
    logLevel: z._default(logLevel, 'info'),
    logRequests: z._default(logRequests, { from: 0, share: 0 }),
    slowMs: integerVariable(0, 600_000, 1_000),
    shutdownGraceMs: integerVariable(0, 600_000, 10_000),
    sessions: z._default(flag, false),
    mcp: z._default(flag, false),
    /** 0 takes a free one; undefined if it is left to the entry. */
    sandboxPort: z.optional(integer(0, 65_535)),
  });

const variableOf = (name: string) => name.replaceAll(/[A-Z]/g, '_$&').toUpperCase();

/** The names of all variables but OpenTelemetry's own. */
export const VARIABLES: readonly string[] = namesIn(variablesOf([], false));

/** What the fields of a schema are called in the environment. */
export function namesIn({ shape }: z.ZodMiniObject): string[] {
  return Object.keys(shape).map(variableOf);
}

/** Durations in milliseconds, sizes in bytes, as named in `contract.md` section 1. */
export type Config = ReturnType<typeof configOf>;

export type Variables = Readonly<Record<string, unknown>>;

/** A bad variable and what was expected. Never its value, which might be a secret, except for an origin in it. */
export interface ConfigProblem {
  readonly variable: string;
  readonly expected: string;
}

/** Where there is no sandbox either. */
export const NO_UPSTREAM: ConfigProblem = {
  variable: 'UPSTREAM_BASE_URL',
  expected: 'the URL of the upstream, such as https://upstream.example; it is not set',
};

export type ParsedConfig = { readonly config: Config } | { readonly problems: readonly ConfigProblem[] };

/** Names every bad variable, not only the first. `others`: what is wrong with variables that are not Portico's own. */
export function parseConfig(
  record: Variables,
  { operations }: Table,
  others: readonly ConfigProblem[] = [],
): ParsedConfig {
  const given = textsIn(record);
  const parsed = readVariables(variablesOf(operations, isProduction(given)), given);
  const problems = [...('problems' in parsed ? parsed.problems : []), ...conflictsIn(given), ...others];
  return 'data' in parsed && problems.length === 0 ? { config: configOf(parsed.data, given) } : { problems };
}

/** An empty variable counts as not set. */
export function textsIn(record: Variables): Variables {
  const present = Object.entries(record).filter(([, value]) => value !== '' && value !== undefined);
  return Object.fromEntries(present.map(([name, value]) => [name, asText(value)]));
}

/** The variables that the fields of a schema are named after. */
export function readVariables<Shape extends z.core.$ZodShape>(
  schema: z.ZodMiniObject<Shape>,
  given: Variables,
): { readonly data: z.output<z.ZodMiniObject<Shape>> } | { readonly problems: readonly ConfigProblem[] } {
  const named = Object.keys(schema.shape).map((name) => [name, given[variableOf(name)]] as const);
  const { data, error } = schema.safeParse(Object.fromEntries(named));
  return data === undefined ? { problems: (error?.issues ?? []).map(problemOf) } : { data };
}

/** The vars of `wrangler.toml` may be numbers, booleans and objects. */
function asText(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return isPlainObject(value) ? JSON.stringify(value) : value;
}

/** None, or one. */
export const problemIf = (isOne: boolean, variable: string, expected: string) =>
  isOne ? [{ variable, expected }] : [];

const isProduction = (given: Variables) => given['NODE_ENV'] === 'production';

/** Problems that depend on two variables. */
function conflictsIn(given: Variables): ConfigProblem[] {
  const lacks = (name: string) => given[name] === undefined;
  const lacksUpstream = isProduction(given) && lacks('UPSTREAM_BASE_URL'); // the sandbox must not start by default there
  const hasSessions = given['SESSIONS'] === 'true';
  const allowsAny = /^\s*\*\s*$/.test(String(given['ALLOWED_ORIGINS']));
  return [
    ...problemIf(lacksUpstream, 'UPSTREAM_BASE_URL', 'a URL, since NODE_ENV is production'),
    ...problemIf(hasSessions && lacks('SECRETS'), 'SECRETS', `${A_SECRET}, since SESSIONS is true`),
    ...problemIf(hasSessions && allowsAny, 'ALLOWED_ORIGINS', 'origins and no *, since SESSIONS is true'),
  ];
}

/** Every schema has words of its own. */
const problemOf = ({ path, message }: z.core.$ZodIssue): ConfigProblem => ({
  variable: variableOf(String(path[0])),
  expected: message,
});

const configOf = (
  { cachePolicy: policyOf, ...parsed }: z.output<ReturnType<typeof variablesOf>>,
  given: Variables,
) => ({
  ...parsed,
  policyOf,
  /** Never with a real upstream, hence never in production. */
  allowsLocalOrigins: given['ALLOWED_ORIGINS'] === undefined && given['UPSTREAM_BASE_URL'] === undefined,
});
