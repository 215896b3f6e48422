import * as z from 'zod/mini';
import { isOrigin } from './core/address.ts';
import { expectedHttpUrl, httpUrlOf } from './core/http-url.ts';
import { isPlainObject, parsedJson } from './core/json.ts';
import { A_SECRET, expectedOwnSecret, expectedSecret } from './core/secrets.ts';
import type { CachePolicy, Operation } from './upstream/operation.ts';
import type { Table } from './upstream/table.ts';

export const plainText = z.string('a text, not a list, null or a binding of another kind');

/** What `read` makes of a text; undefined if that is not what was expected. */
export const readAs = <T>(expected: string | ((text: string) => string), read: (text: string) => T | undefined) =>
  z.pipe(
    plainText,
    z.transform((text: string, { issues }) => {
      const value = read(text);
      const message = typeof expected === 'string' ? expected : expected(text);
      if (value === undefined) issues.push({ code: 'custom', message, input: text });
      return value as T;
    }),
  );

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
const host = readAs('a name or an IP address, without a port', (text) => (HOST.test(text) ? text : undefined));
const hostVariable = z._default(host, '127.0.0.1');

/** Without a query and a fragment. */
const httpUrl = readAs(expectedHttpUrl, httpUrlOf).check(
  z.refine((url) => url.search === '', { error: 'a URL without a query', abort: true }),
  z.refine((url) => url.hash === '', { error: 'a URL without a fragment', abort: true }),
);

const baseUrl = httpUrl.check(
  z.refine((url) => url.username === '' && url.password === '', 'a URL without a user name and password'),
);

/** Without a slash at its end. */
const publicUrl = z.pipe(
  baseUrl,
  z.transform(({ origin, pathname }) => (pathname === '/' ? origin : origin + pathname)),
);

interface Override {
  readonly fresh?: number;
  readonly stale?: number;
  readonly on_error?: number;
}

type Overrides = ReadonlyMap<string, Override | false>;

const MOST_SECONDS = 31_536_000;
const FIELDS = ['fresh', 'stale', 'on_error'];

const json = readAs('a JSON object', (text) => {
  const value = parsedJson(text);
  return isPlainObject(value) ? value : undefined;
});

/** Policies by the id of the operation. */
function cachePolicyOf({ operations }: Table) {
  return z.pipe(
    json,
    z.transform((given, { issues }): Overrides => {
      const tell = (message: string) => issues.push({ code: 'custom', message, input: given });
      for (const [id, policy] of Object.entries(given)) {
        const operation = operations.find((one) => one.id === id);
        if (operation?.cache) for (const expected of expectedPolicy(policy)) tell(id + expected);
        else if (operation) tell(`no policy of ${id}, whose answers are never cached`);
        else tell(`only ids of operations, not ${JSON.stringify(id)}`);
      }
      return new Map(Object.entries(given)) as Overrides;
    }),
  );
}

/** What is wrong with one, and where. */
function expectedPolicy(policy: unknown): string[] {
  if (policy === false) return [];
  if (!isPlainObject(policy)) return [' to be false, or an object with fresh, stale or on_error'];
  return Object.entries(policy).flatMap(([field, seconds]) => {
    if (!FIELDS.includes(field)) return [` to have fresh, stale and on_error only, not ${JSON.stringify(field)}`];
    const isGood = typeof seconds === 'number' && seconds >= 0 && seconds <= MOST_SECONDS;
    return isGood ? [] : [`.${field} to be a number of seconds from 0 to ${MOST_SECONDS}`];
  });
}

const entriesIn = (text: string) => text.split(',').map((part) => part.trim());

/** Comma-separated. `expected` says of a bad entry what it should be. */
function listOf(expected: (entry: string, entries: readonly string[]) => string | undefined) {
  const troubleOf = (entry: string, index: number, entries: readonly string[]) => {
    if (entry === '') return `entry ${index + 1} not to be empty; is there a comma too many?`;
    const other = expected(entry, entries);
    return other === undefined ? undefined : `entry ${index + 1} to be ${other}`;
  };
  const troubleIn = (text: string) =>
    entriesIn(text)
      .map(troubleOf)
      .find((trouble) => trouble !== undefined);
  return readAs(
    (text) => troubleIn(text) ?? '',
    (text) => (troubleIn(text) === undefined ? entriesIn(text) : undefined),
  );
}

const address = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]);

const addressList = listOf((entry) =>
  address.safeParse(entry).success ? undefined : 'an IP address or a CIDR such as 10.0.0.0/8',
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
  const share = /^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined;
  return share === undefined ? undefined : { from: 500, share };
});

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const logLevel = readAs('trace, debug, info, warn, error, fatal or silent', (text) =>
  LEVELS.find((level) => level === text),
);

/** The variables by the names that they have in `Config`: `upstreamBaseUrl` is `UPSTREAM_BASE_URL`. */
const variables = z.object({
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
  cachePolicy: z.optional(z.string()), // of each table its own: `variablesOf`
  /** The first one seals, each can open, the last one names. One may be both first and last, with a new one between. */
  secrets: z._default(listOf(expectedSecret), []), // stricter in production: `variablesOf`
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
  /** 0 takes a free one; undefined if it is left to the entry. */
  sandboxPort: z.optional(integer(0, 65_535)),
});

const variablesOf = (table: Table, isProduction: boolean) =>
  z.extend(variables, {
    cachePolicy: z.optional(cachePolicyOf(table)),
    secrets: z._default(listOf(isProduction ? expectedOwnSecret : expectedSecret), []),
  });

const variableOf = (name: string) => name.replaceAll(/[A-Z]/g, '_$&').toUpperCase();

/** The names of all variables but OpenTelemetry's own. */
export const VARIABLES: readonly string[] = namesIn(variables);

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

/** Names every bad variable, not only the first. */
export function parseConfig(record: Variables, table: Table): ParsedConfig {
  const given = textsIn(record);
  const parsed = readVariables(variablesOf(table, isProduction(given)), given);
  const problems = [...('problems' in parsed ? parsed.problems : []), ...conflictsIn(given)];
  return 'data' in parsed && problems.length === 0 ? { config: configOf(parsed.data, given, table) } : { problems };
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
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? JSON.stringify(value) : value;
}

/** None, or one. */
export const problemIf = (isOne: boolean, variable: string, expected: string) =>
  isOne ? [{ variable, expected }] : [];

const isProduction = (given: Variables) => given['NODE_ENV'] === 'production';

/** Problems that depend on two variables. */
function conflictsIn(given: Variables): ConfigProblem[] {
  const lacks = (name: string) => given[name] === undefined;
  const hasSessions = given['SESSIONS'] === 'true';
  const allowsAny = /^\s*\*\s*$/.test(String(given['ALLOWED_ORIGINS']));
  return [
    // In production the sandbox must not start by default.
    ...problemIf(
      isProduction(given) && lacks('UPSTREAM_BASE_URL'),
      'UPSTREAM_BASE_URL',
      'a URL, since NODE_ENV is production',
    ),
    ...problemIf(hasSessions && lacks('SECRETS'), 'SECRETS', `${A_SECRET}, since SESSIONS is true`),
    ...problemIf(hasSessions && allowsAny, 'ALLOWED_ORIGINS', 'origins and no *, since SESSIONS is true'),
  ];
}

/** Every schema has words of its own. */
const problemOf = ({ path, message }: z.core.$ZodIssue): ConfigProblem => ({
  variable: variableOf(String(path[0])),
  expected: message,
});

type Parsed = z.output<ReturnType<typeof variablesOf>>;

function configOf({ cachePolicy: overrides = new Map(), ...parsed }: Parsed, given: Variables, table: Table) {
  return {
    ...parsed,
    policyOf: policiesOf(overrides, table),
    /** Never with a real upstream, hence never in production. */
    allowsLocalOrigins: given['ALLOWED_ORIGINS'] === undefined && given['UPSTREAM_BASE_URL'] === undefined,
  };
}

/** The policies of the rows, overridden by the operator's. */
function policiesOf(overrides: Overrides, { operations }: Table): (operation: Operation) => CachePolicy | undefined {
  const policies = new Map<string, CachePolicy>();
  for (const { id, cache } of operations) {
    const override = overrides.get(id);
    if (!cache || override === false) continue;
    const { fresh = cache.fresh, stale = cache.stale, on_error: onError = cache.onError } = override ?? {};
    policies.set(id, { fresh, stale, onError });
  }
  return ({ id }) => policies.get(id);
}
