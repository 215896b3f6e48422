import * as z from 'zod/mini';
import { isOrigin } from './core/address.ts';
import { parsedJson } from './core/json.ts';
import { STORE_ADDRESS, storeAddressOf } from './core/store-address.ts';
import type { CachePolicy, Operation } from './upstream/operation.ts';
import type { Table } from './upstream/table.ts';

/** What `read` makes of a text; undefined if that is not what was expected. */
export const readAs = <T>(expected: string, read: (text: string) => T | undefined) =>
  z.pipe(
    z.string(),
    z.transform((text: string, { issues }) => {
      const value = read(text);
      if (value === undefined) issues.push({ code: 'custom', message: expected, input: text });
      return value as T;
    }),
  );

export const integer = (least: number, most: number) =>
  readAs(`an integer from ${least} to ${most}`, (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  });
export const integerVariable = (least: number, most: number, otherwise: number) =>
  z._default(integer(least, most), otherwise);
const flag = z.stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'true or false' });
const portVariable = (otherwise: number) => integerVariable(0, 65_535, otherwise);
const msVariable = (otherwise: number) => integerVariable(1, 600_000, otherwise);
const hostVariable = z._default(z.string(), '127.0.0.1');

export const httpUrl = readAs('an http:// or https:// URL', (text) => {
  const url = URL.parse(text.replace(/\/+$/, ''));
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
});

const baseUrl = httpUrl.check(
  z.refine((url) => url.username === '' && url.password === '', 'a URL without a user name or password'),
  z.refine((url) => url.search === '' && url.hash === '', 'a URL without query or fragment'),
);

/** Without a slash at its end. */
const publicUrl = z.pipe(
  baseUrl,
  z.transform(({ origin, pathname }) => (pathname === '/' ? origin : origin + pathname)),
);

const seconds = z.number().check(z.minimum(0), z.maximum(31_536_000));
const policy = z.union(
  [z.partial(z.strictObject({ fresh: seconds, stale: seconds, on_error: seconds })), z.literal(false)],
  '{"fresh": s, "stale": s, "on_error": s} or false',
);

const json = readAs('a JSON object', parsedJson);

/** By the ids of operations that can be cached. */
function cachePolicyOf({ operations }: Table) {
  const cacheable = operations.filter(({ cache }) => cache).map(({ id }) => [id, z.optional(policy)] as const);
  return z.pipe(json, z.strictObject(Object.fromEntries(cacheable)));
}

const listed = z.pipe(
  z.string(),
  z.transform((text) => text.split(',').map((part) => part.trim())),
);

const listOf = (isOne: (part: string) => boolean, expected: string) =>
  listed.check(z.refine((parts) => parts.every(isOne), expected));

const address = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]);

const addressList = listOf((part) => address.safeParse(part).success, 'comma-separated addresses or CIDRs');

const ANY_ORIGIN =
  'scheme://host[:port] of a page, as browsers send it, in lower case, such as https://app.example (no wildcards; or * alone)';

const originList = listed.check(
  z.refine((parts) => parts.every(isOrigin) || (parts.length === 1 && parts[0] === '*'), {
    error: ({ input }) => expectedOrigin(input as string[]),
  }),
);

/** What was expected instead of the first bad origin. */
function expectedOrigin(parts: readonly string[]): string {
  const index = parts.findIndex((part) => !isOrigin(part));
  const meant = URL.parse(parts[index] ?? '')?.origin ?? '';
  return `entry ${index + 1} to be ${isOrigin(meant) ? meant : ANY_ORIGIN}`;
}

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

const LEAST_SECRET = 32;
const A_SECRET = `a secret of ${LEAST_SECRET} characters or more`;
const secretList = listOf(({ length }) => length >= LEAST_SECRET, `comma-separated, each ${A_SECRET}`);

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
  storeUrl: z.optional(readAs(STORE_ADDRESS, storeAddressOf)),
  /** The first one seals, each can open, the last one names. One may be both first and last, with a new one between. */
  secrets: z._default(secretList, []),
  /** `*` alone allows all. */
  allowedOrigins: z._default(originList, []),
  rateLimitPerMinute: integerVariable(0, 1_000_000_000, 600),
  upstreamBudgetPerMinute: integerVariable(0, 1_000_000_000, 0),
  /** Addresses and CIDRs. */
  trustedProxies: z._default(addressList, []),
  logLevel: z._default(z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), 'info'),
  logRequests: z._default(logRequests, { from: 0, share: 0 }),
  slowMs: integerVariable(0, 600_000, 1_000),
  shutdownGraceMs: integerVariable(0, 600_000, 10_000),
  sessions: z._default(flag, false),
  /** 0 takes a free one; undefined if it is left to the entry. */
  sandboxPort: z.optional(integer(0, 65_535)),
});

const variablesOf = (table: Table) => z.extend(variables, { cachePolicy: z.optional(cachePolicyOf(table)) });

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

type ParsedConfig = { readonly config: Config } | { readonly problems: readonly ConfigProblem[] };

/** Names every bad variable, not only the first. */
export function parseConfig(record: Variables, table: Table): ParsedConfig {
  const given = textsIn(record);
  const parsed = readVariables(variablesOf(table), given);
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

const problemIf = (isOne: boolean, variable: string, expected: string) => (isOne ? [{ variable, expected }] : []);

/** Problems that depend on two variables. */
function conflictsIn(given: Variables): ConfigProblem[] {
  const lacks = (name: string) => given[name] === undefined;
  const isProduction = given['NODE_ENV'] === 'production';
  const hasSessions = given['SESSIONS'] === 'true';
  const allowsAny = /^\s*\*\s*$/.test(String(given['ALLOWED_ORIGINS']));
  return [
    // In production the sandbox must not start by default.
    ...problemIf(
      isProduction && lacks('UPSTREAM_BASE_URL'),
      'UPSTREAM_BASE_URL',
      'a URL, since NODE_ENV is production',
    ),
    ...problemIf(!lacks('STORE_URL') && lacks('SECRETS'), 'SECRETS', `${A_SECRET}, since STORE_URL is set`),
    ...problemIf(hasSessions && lacks('SECRETS'), 'SECRETS', `${A_SECRET}, since SESSIONS is true`),
    ...problemIf(hasSessions && allowsAny, 'ALLOWED_ORIGINS', 'origins and no *, since SESSIONS is true'),
  ];
}

function problemOf(issue: z.core.$ZodIssue): ConfigProblem {
  const [name = '', ...inside] = issue.path.map(String);
  const place = inside.length > 0 ? `${inside.join('.')}: ` : '';
  return { variable: variableOf(name), expected: place + expectationOf(issue) };
}

function expectationOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `nothing called ${issue.keys.join(', ')}`;
  return issue.message.replace(/^Invalid \w+: expected /, '').replace(/, received .*/, '');
}

type Parsed = z.output<ReturnType<typeof variablesOf>>;

function configOf({ cachePolicy: overrides = {}, ...parsed }: Parsed, given: Variables, table: Table) {
  return {
    ...parsed,
    policyOf: policiesOf(overrides, table),
    /** Never with a real upstream, hence never in production. */
    allowsLocalOrigins: given['ALLOWED_ORIGINS'] === undefined && given['UPSTREAM_BASE_URL'] === undefined,
  };
}

/** The policies of the rows, overridden by the operator's. */
function policiesOf(
  overrides: NonNullable<Parsed['cachePolicy']>,
  { operations }: Table,
): (operation: Operation) => CachePolicy | undefined {
  const policies = new Map<string, CachePolicy>();
  for (const { id, cache } of operations) {
    const override = overrides[id];
    if (!cache || override === false) continue;
    const { fresh = cache.fresh, stale = cache.stale, on_error: onError = cache.onError } = override ?? {};
    policies.set(id, { fresh, stale, onError });
  }
  return ({ id }) => policies.get(id);
}
