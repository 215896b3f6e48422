import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'vitest/node';
import { describe, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { ID_FORMS } from '../../src/upstream/operation.ts';
import { patternOf } from '../../src/upstream/refusal.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Sizes that are let in: of a head or a body, of an answer of the upstream, and of one code or credential. */
const SIZES = { client: 65_536, upstream: 5_242_880, word: 4_096 } as const;
/** For each 64 KB, and for less. One that looks at pairs of characters takes a thousand times as long. */
const MS = { client: 2, upstream: 10, word: 2 } as const;
/** The fastest counts, since the machine may be busy. */
const TRIES = 10;

/** Whose text an expression meets, and the text that keeps it busy longest: `again` fills the room between the others. */
interface Worst {
  readonly of: keyof typeof SIZES;
  readonly before: string;
  readonly again: string;
  readonly after: string;
  /** What `new RegExp` makes. */
  readonly made?: readonly RegExp[];
}

type Rest = Partial<Omit<Worst, 'of' | 'again'>>;

const input = (of: Worst['of'], again: string, rest: Rest): Worst => ({ of, before: '', again, after: '', ...rest });
const client = (again: string, rest: Rest = {}) => input('client', again, rest);
const word = (again: string, rest: Rest = {}) => input('word', again, rest);
const upstream = (again: string, rest: Rest = {}) => input('upstream', again, rest);

/** It meets only what we or the operator have written, or what the store says of itself. */
const OURS = 'ours';

/** Every regular expression of the gateway as it is written, by its file. */
const EXPRESSIONS: Readonly<Record<string, Readonly<Record<string, Worst | typeof OURS>>>> = {
  'src/cache/keys.ts': { '/^0+(?=\\d)/': client('0', { after: 'x' }) },
  'src/config.ts': {
    '/[A-Z]/g': OURS,
    '/^\\d+$/': OURS,
    '/^(0(\\.\\d+)?|1(\\.0+)?)$/': OURS,
    '/^(?:[\\w.-]+|[\\da-f]*:[\\da-f:.]*(?:%[\\w.-]+)?)$/i': OURS,
    '/^\\s*\\*\\s*$/': OURS,
  },
  'src/core/http-url.ts': {
    '/[^!#-[\\]-~]/g': client('"'),
    '/\\/+$/': OURS,
    '/^https?:\\/\\/[^/]/i': OURS,
    '/^https?:\\/\\/([^/?#]*)/i': OURS,
    '/:[^:@\\]]*$/': OURS,
  },
  'src/core/values.ts': { '/\\d{16}/': upstream('1a'), '/^-?\\d+$/': upstream('1', { after: 'a' }) },
  'src/middleware/calls.ts': {
    '/(^|[\\s,])(no-store|private)($|[\\s,=])/': OURS,
    "new RegExp(`^${ID_FORMS[idForm ?? 'digits']}$`)": client('1', {
      after: '!',
      made: Object.values(ID_FORMS).map((form) => new RegExp(`^${form}$`)),
    }),
  },
  'src/core/crypto.ts': { '/^[\\w-]+$/': client('a', { after: '!' }) },
  'src/core/errors.ts': {
    '/^(\\d{1,2})?[a-z]{1,20}([_-][a-z]{1,20})*$/': word('_a', { before: 'a', after: '!' }),
    '/[_-]/g': word('_'),
  },
  'src/core/address.ts': {
    '/(?<=:)\\d+\\.[\\d.]+$/': client('1.', { before: ':', after: 'x' }),
    '/^(?!(?:ftp|file|wss?):)[a-z][a-z0-9+.-]*:\\/\\/(?:[a-z0-9._-]+|\\[[0-9a-f:]+\\])(?::\\d{1,5})?$/': client('a', {
      before: 'http://',
      after: '!',
    }),
    '/^https?:/': client('h'),
    '/^http:\\/\\/(?:localhost|127\\.0\\.0\\.1|\\[::1\\])(?::\\d{1,5})?$/': client('1', {
      before: 'http://localhost:',
    }),
  },
  'src/entry/node/redis/address.ts': {
    '/^redis(?<tls>s?)(?:-(?<kind>sentinel|cluster))?:\\/\\/(?:(?<login>[^/?#@]*)@)?(?<nodes>[^/?#@]*)(?<path>\\/[^?#@]*)?(?<rest>.*)$/s':
      OURS,
    '/^(?<host>\\[[0-9a-f:.]+\\]|[\\w.-]+)(?::(?<port>\\d{1,5}))?$/i': OURS,
    '/^(?:\\[[0-9a-f:.]+\\]|[\\w.-]+)(?::|$)/i': OURS,
    '/^\\/?(?<db>\\d{0,4})$/': OURS,
    '/^\\/(?<master>[\\w.-]+)(?:\\/(?<db>\\d{0,4}))?$/': OURS,
    '/^\\/?(?<db>)$/': OURS,
    '/^\\[|\\]$/g': OURS,
  },
  'src/entry/cli/words.ts': { "/[.']? To specify/": OURS },
  'src/entry/node/doctor.ts': { '/^[!-~]{1,4096}$/': OURS },
  'src/entry/node/files.ts': { '/[\\r\\n]+$/': OURS },
  'src/entry/node/redis/connection.ts': {
    '/^ReplyError|Last error: ReplyError/': OURS,
    '/(?:^|ReplyError: )(?:ERR )?([A-Z_]{3,40})\\b/': OURS,
  },
  'src/entry/node/redis/client.ts': {
    "new RegExp(`^${field}:(.*?)\\\\r?$`, 'm')": OURS,
    '/min-replicas-to-write,(\\d+)/': OURS,
  },
  'src/entry/node/server/descriptors.ts': { '/^Max open files +(\\d+)/m': OURS },
  'src/entry/node/server/address.ts': {
    '/^(?:\\[(?<ipv6>[^\\]]+)\\](?::[\\w.-]+)?|(?<ipv4>[\\d.]+):[\\w.-]+)$/': client('1', { after: ':' }),
  },
  'src/entry/node/server/guard.ts': {
    '/^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\\.?|\\[[0-9A-Fa-f:.]{2,45}\\])(?::\\d{1,5})?$/': client('a', {
      after: '!',
    }),
    "/^[A-Za-z0-9/._~!$&'()*+,;=:@-]*$/": client('a', { after: '%' }),
    '/\\/\\.\\.?(?:\\/|$)/': client('/..a'),
    '/:\\d+$/': client(':1', { after: 'a' }),
    '/^https?:\\/\\/([^/?#]+)(\\/.*)?$/i': client('a', { before: 'http://', after: '?' }),
  },
  'src/entry/node/server/traffic.ts': { '/^\\/(?:livez|readyz)\\/?(?:\\?|$)/': client('/livez') },
  'src/entry/node/settings.ts': {
    '/^https?:$/': OURS,
  },
  'src/entry/node/tracing/sdk.ts': {
    '/^(parentbased_)?(.*)$/': OURS,
    '/"code":"(\\w{1,40})"|\\b(OTEL_[A-Z_]{1,60})|\\b(time)d? ?out\\b|\\b(Dropped) \\d+ spans/i': OURS,
  },
  'src/entry/node/transport.ts': {
    '/\\/$/': OURS,
    '/^(HTTPParserError|ERR_ASSERTION|HPE_|UND_ERR_(HEADERS_OVERFLOW|RES_|INVALID_)|bad (upgrade|response)$|too many content-)/':
      OURS,
    '/^(Z_|ZSTD_|ERR__)/': OURS,
    '/^(ENOTFOUND|EAI_)/': OURS,
    '/^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|EPERM|UND_ERR_(ABORTED|INVALID_ARG))$/': OURS,
    '/^(UND_ERR_(CONNECT|HEADERS)_TIMEOUT|ETIMEDOUT)$/': OURS,
    '/^UND_ERR_(CONNECT|HEADERS)_TIMEOUT$/': OURS,
    '/^(EPROTO|UND_ERR_PRX_TLS|ERR_(SSL|TLS)_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_)/':
      OURS,
  },
  'src/entry/node/certificates.ts': { '/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g': OURS },
  'src/entry/node/logger.ts': { '/^/m': OURS },
  'src/resilience/reasons.ts': { '/^[A-Z][A-Z0-9_]{1,63}$/': OURS },
  'src/entry/worker/transport.ts': { '/\\/$/': OURS },
  'src/gateway/overviews.ts': {
    '/\\W+/': OURS,
    '/:\\w+/': OURS,
    '/^(?!\\.{1,2}$)[A-Za-z0-9._~-]+$/': OURS,
    '/^:[a-zA-Z]\\w*$/': OURS,
    '/^[a-zA-Z]\\w{0,63}$/': OURS,
    '/^\\/bff\\/v1\\/(batch|outcome|session)(\\/|$)/': OURS,
    'new RegExp(`^${ID_FORMS[read.idForm]}$`)': OURS,
  },
  'src/gateway/found.ts': { '/^\\d+$/': upstream('1', { after: 'a' }) },
  'src/gateway/plan.ts': {
    "new RegExp(`^${ID_FORMS[operation.idForm ?? 'digits']}$`)": upstream('1', {
      made: Object.values(ID_FORMS).map((form) => new RegExp(`^${form}$`)),
    }),
  },
  'src/middleware/body.ts': {
    '/^application\\/json\\s*(?:;|$)/i': client(' ', { before: 'application/json', after: '!' }),
    '/;\\s*charset\\s*=\\s*"?([^";\\s]+)/i': client('; charset  ='),
  },
  'src/middleware/cors.ts': { '/^https?:\\/\\//': client('http:/') },
  'src/middleware/headers.ts': {
    '/^(?:token|bearer) +([\\x21-\\x7e]{1,4096})$/i': client(' ', { before: 'Token', after: 'a b' }),
    '/^W\\//': client('W/'),
    '/^no-cache(=|$)/': client('no-cache'),
    '/^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/': client('-', {
      before: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`,
      after: '\n',
    }),
    '/^[\\x20-\\x7e]{1,512}$/': client(' '),
    '/^[A-Za-z0-9._-]{1,128}$/': client('a'),
  },
  'src/middleware/begin.ts': {
    '/^(?:\\/(?!\\.{1,2}(?:\\/|$))[A-Za-z0-9._~-]*)+$/': client('/.a', { after: '%' }),
  },
  'src/middleware/prefer.ts': {
    '/(?:[^,"]|"(?:[^"\\\\]|\\\\.)*"?)+/g': client('"', { after: '\\' }),
    '/^(?:[^;"]|"(?:[^"\\\\]|\\\\.)*"?)+/': client('"\\', { after: ';' }),
    '/^"(.*)"$/': client('"', { after: 'a' }),
    '/^\\d+$/': client('1', { after: 'a' }),
  },
  'src/middleware/request.ts': {
    '/^[\\x20-\\x7e]{1,256}$/': client(' '),
    '/^[\\x21-\\x7e]{1,255}$/': client('a'),
    '/\\/$/': client('/', { after: 'a' }),
  },
  'src/core/logger.ts': { '/^\\s+at /': OURS, '/^\\w{1,40}$/': OURS },
  'src/resilience/drift.ts': { '/^\\./': OURS },
  'src/routes/batch.ts': { '/^\\/[\\x21\\x22\\x24-\\x7e]*$/': client('a', { before: '/', after: '#' }) },
  'src/routes/home.ts': {
    '/\\bjson\\b/i': client(' jsonx'),
    '/\\btext\\/html\\b/i': client(' text/htmlx'),
  },
  'src/routes/openapi.ts': { '/[\\w-]+/g': OURS },
  'src/routes/selection.ts': {
    '/^\\s*\\[/': upstream(' ', { after: '1' }),
    '/^\\s*\\{/': upstream(' ', { after: '1' }),
    '/^(section|field|page_?size)/i': client('sectio'),
    '/^(?:[1-9]\\d?|100)$/': client('1'),
  },
  'src/routes/overview-answer.ts': {
    '/^(?:[\\w-]{16}!?)?(?:\\.(?:[\\w-]{16}!?)?)*$/': client('a234567890123456.', { after: '*' }),
    '/^\\s*(?:W\\/)?"([^"]*)"\\s*$/': client(' ', { before: '"a"', after: 'a' }),
  },
  'src/routes/overview-lines.ts': { '/[\\r\\n]+\\s*/g': upstream('1,\n') },
  'src/routes/overview-head.ts': { '/:(\\w+)/': OURS },
  'src/routes/details.ts': {
    'new RegExp(String.raw`${CODE.source}|^status_\\d{3}$`)': OURS,
    '/^get/': OURS,
    'new RegExp(`^${form}$`)': OURS,
    '/^[\\x21-\\x7e]{1,255}$/': OURS,
  },
  'src/routes/problems.ts': { '/^status_4\\d\\d$/': client('status_4') },
  'src/routes/route.ts': { '/\\{(\\w+)\\}/': OURS, '/\\/$/': OURS },
  'src/routes/session.ts': { '/^[\\x21-\\x7e]+$/': client('a', { after: ' ' }) },
  'src/store/bounded.ts': { '/[^\\u0000-\\u00ff]/': upstream('a') },
  'src/upstream/client.ts': {
    '/([\\w-]+)(?:=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,;]*)))?/g': client('a="\\"', { after: '\\' }),
    '/^-?\\d+$/': client('1', { after: 'a' }),
    '/^\\d+/': client('1'),
  },
  'src/upstream/via.ts': { '/(?<![^\\s,])portico-[\\w-]{12}(?![^\\s,])/g': client('portico-01234567890 ') },
  'src/upstream/fields.ts': {
    '/^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]\\d\\d:?\\d\\d)$/': upstream('1', {
      before: '2026-01-01T00:00:00.',
    }),
    '/^(\\d+ )?\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?$/': upstream('1', { after: ' a' }),
    '/^-?\\d+(\\.\\d+)?$/': upstream('1', { before: '1.', after: 'a' }),
  },
  // What a hook gives, who may have asked another server.
  'src/upstream/hooks.ts': {
    '/^(?:[\\x21-\\x7e](?:[\\t\\x20-\\x7e]*[\\x21-\\x7e])?)?$/': word('a ', { before: 'a', after: '\n' }),
    "/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/": word('a', { after: ' ' }),
  },
  'src/upstream/issues.ts': { '/^(Invalid|Too) /': OURS },
  'src/upstream/links.ts': { '/\\/$/': OURS, '/^https?:$/': upstream('http') },
  'src/upstream/operation.ts': {
    '/^(GET|POST|PATCH|DELETE) ((?:\\/(?:\\{id\\}|(?!\\.{1,2}(?:\\/|$))[A-Za-z0-9._~-]+))+\\/?)$/': OURS,
    '/^[a-zA-Z]\\w{0,63}$/': OURS,
    '/^[a-zA-Z][\\w-]{0,63}$/': OURS,
    '/^[a-z][a-z0-9-]{0,31}$/': OURS,
    '/[A-Z]/g': OURS,
    '/ (api|id|ip) /': OURS,
  },
  'src/upstream/table.ts': {
    '/\\/$/': OURS,
    'new RegExp(`^${path}/?$`)': client('1', {
      before: '/api/v2/thing/',
      after: '!',
      made: Object.values(ID_FORMS).map((form) => new RegExp(`^/api/v2/thing/(${form})/?$`)),
    }),
  },
  'src/proxy-account/referral.ts': {
    'z.email()': upstream('a.', { made: [z.regexes.email] }),
  },
  'src/upstream/parameters.ts': {
    '/^-?\\d{1,19}$/': client('1'),
    '/^0*[1-9]\\d{0,18}$/': client('0', { after: 'a' }),
    '/^([Tt]rue|TRUE|[Ff]alse|FALSE|1|0)$/': client('true'),
    '/^(\\d{4}-\\d\\d-\\d\\d)([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,9})?)?(Z|[+ -]\\d\\d:?\\d\\d)?)?$/i': client('1', {
      before: '2026-01-01T00:00:00.',
    }),
  },
  'src/upstream/refusal.ts': {
    '/<[a-z!/?][^>]*>?/i': upstream('<'),
    '/\\s/': upstream('a'),
    '/[\\s,;="]+/': word(' '),
    '/\\.$/': OURS,
    '/[.*+?^${}()|[\\]\\\\/-]/g': word('.'),
    // The credential of the request, in the words of the upstream.
    'new RegExp(isLong ? literal + rest : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, flags)': client('a', {
      made: ['aaaaaaa', `b${'a'.repeat(4095)}`, `${'a'.repeat(4095)}b`, `${'a'.repeat(16)}b${'a'.repeat(4079)}`].map(
        (credential) => patternOf(credential, 'g'),
      ),
    }),
    '/^\\d+(\\.\\d+)?$/': client('1', { after: 'a' }),
    '/[a-z]/i': client('1'),
  },
};

interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly regex?: unknown;
  readonly callee?: Syntax;
}

const isSyntax = (value: object): value is Syntax => 'type' in value && 'start' in value;

/** All that a piece of source consists of. */
function* partsOf(value: unknown): Generator<Syntax> {
  if (typeof value !== 'object' || value === null) return;
  if (isSyntax(value)) yield value;
  for (const inner of Object.values(value)) yield* partsOf(inner);
}

const MAKERS = new Set(['RegExp', 'z.email']);

/** The regular expressions that are written in the gateway's source. */
function written(): string[] {
  const files = globSync('src/**/*.ts', { cwd: ROOT });
  return files.flatMap((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const textOf = ({ start, end }: Syntax) => text.slice(start, end);
    return Array.from(partsOf(parseAst(text, { lang: 'ts' })))
      .filter(({ regex, callee }) => regex !== undefined || (callee && MAKERS.has(textOf(callee))))
      .map((part) => `${file}: ${textOf(part)}`);
  });
}

const listed = Object.entries(EXPRESSIONS).flatMap(([file, those]) =>
  Object.entries(those).map(([source, worst]) => ({ name: `${file}: ${source}`, source, worst })),
);

/** A global one goes through the whole text, as in `replaceAll`. */
const run = (expression: RegExp, text: string) =>
  expression.global ? text.replaceAll(expression, '') : expression.exec(text);

/** Of the fastest try. Further ones are made only while it takes longer than `enough`. */
function msOf(expression: RegExp, text: string, enough: number): number {
  let least = Infinity;
  for (let tries = 0; tries < TRIES && least > enough; tries++) {
    const begin = threadMs();
    run(expression, text);
    least = Math.min(least, threadMs() - begin);
    if (tries > 0 && least > 100 * enough) break;
  }
  return least;
}

/** Time of this thread alone: others may keep the machine busy. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

const madeOf = (source: string, { made }: Worst): readonly RegExp[] => {
  const end = source.lastIndexOf('/');
  return made ?? [new RegExp(source.slice(1, end), source.slice(end + 1))];
};

const textOf = ({ before, again, after }: Omit<Worst, 'of'>, size: number) =>
  before + again.repeat(Math.ceil(size / again.length)) + after;

/** What is slow, with its time in milliseconds. */
function slowIn(expression: RegExp, worst: Worst, size: number): string[] {
  const enough = MS[worst.of] * Math.max(1, size / SIZES.client);
  const ms = msOf(expression, textOf(worst, size), enough);
  return ms > enough ? [`${JSON.stringify(worst.again)}: ${ms}`] : [];
}

/** From the start of a text, and from within it. */
const FRAMES = [
  { before: '', after: '\u0000' },
  { before: '\u0000', after: '\u0000' },
];

/** Repeated alone and in pairs. */
const CHARACTERS = Array.from(' \t\n0a-.,:;=/\\"');
const PAIRS = CHARACTERS.flatMap((one) => CHARACTERS.map((other) => (one === other ? one : one + other)));

test('every regular expression of the gateway is listed here, with whose text it meets', () => {
  const found = written();
  expect(found.length).toBeGreaterThan(80);
  expect(listed.map(({ name }) => name).toSorted()).toEqual([...new Set(found)].toSorted());
});

describe.each(listed.filter(({ worst }) => worst !== OURS))('$name', ({ source, worst }) => {
  if (worst === OURS) return;
  const expressions = madeOf(source, worst);

  test('takes no longer with the worst text of the size that is let in', () => {
    for (const expression of expressions) expect(slowIn(expression, worst, SIZES[worst.of])).toEqual([]);
  });

  test('takes no longer with other text that repeats', () => {
    const { of, before, after } = worst;
    const frames = [...FRAMES, ...(before === '' ? [] : [{ before, after }])];
    const texts = frames.flatMap((frame) => PAIRS.map((again) => ({ of, ...frame, again })));
    for (const expression of expressions)
      for (const text of texts) expect(slowIn(expression, text, SIZES.client)).toEqual([]);
  });
});
