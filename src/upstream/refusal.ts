import * as z from 'zod/mini';
import { type ErrorItem, GatewayError, isCode } from '../core/errors.ts';
import { isPlainObject, parsedJson } from '../core/json.ts';
import type { Table } from './table.ts';
import { retryAfterOf } from './answer-headers.ts';
import { headerOf, type RawAnswer } from './transport.ts';

/** Statuses for which the upstream's own code is ignored: clients rely on ours. */
const FIXED_NAMES = new Set([401, 429]);

/** Errors are short. A longer body is not parsed: its values could take a hundred times its size. */
const MAX_BODY = 65_536;

/** How long an account is not asked again where a 429 does not say it. */
const RATE_LIMITED_SECONDS = 10;

const MARKUP = /<[a-z!/?][^>]*>?/i;
const MAX_ITEMS = 50;
const MAX_DEPTH = 8;
const MAX_MESSAGE = 500;
const FIELDS_REFUSED = 'The upstream refused parts of the request; `errors` names each.';

/** The `detail` of a refusal without words, for the two statuses that the gateway answers with too. */
const WITHOUT_WORDS: Readonly<Record<number, string>> = {
  401: 'The upstream does not accept this key.',
  429: 'The upstream has had too many calls from this account.',
};

/** One error found in an upstream body, whatever the body's form (`contract.md` section 4, last paragraph). */
interface Finding {
  readonly code?: string | undefined;
  readonly message: string;
  readonly field: string | null;
}

interface RefusalContext {
  /** The time of day, in milliseconds since 1970. */
  readonly wall: number;
  /** Words that are concealed in the upstream's texts, as is its host. */
  readonly secrets: readonly string[];
  readonly upstream: URL;
  readonly refusals: Table['refusals'];
}

/** An upstream 4xx as an error of ours, with the upstream's status and, where it has one, its code. */
export function refusalOf(raw: RawAnswer, { wall, secrets, upstream, refusals }: RefusalContext): GatewayError {
  const { status, body } = raw;
  const conceal = concealing(secrets, upstream);
  const isShort = 'text' in body && body.text.length <= MAX_BODY;
  const said = isShort ? parsedJson(body.text) : undefined;
  const isProblem = isPlainObject(said) && PROBLEM.test(headerOf(raw, 'content-type') ?? '');
  const found = findingsIn(isProblem ? { status, errors: [], ...said } : said, TOP).slice(0, MAX_ITEMS);
  const findings = distinct(found.map((finding) => concealed(finding, conceal)));
  const code = codeFor(status, findings);
  const whole = findings.find((finding) => finding.field === null && finding.message !== finding.code)?.message;
  const known = code === undefined ? undefined : refusals.get(code);
  const documented = known?.status === status ? known : undefined; // with another status it has another meaning
  return GatewayError.refusal(code, status, {
    title: known?.title,
    detail: whole ?? documented?.description ?? (code === 'validation_failed' ? FIELDS_REFUSED : WITHOUT_WORDS[status]),
    retryAfter: status === 429 ? (retryAfterOf(raw, wall) ?? RATE_LIMITED_SECONDS) : undefined,
    errors: findings.map((finding): ErrorItem => ({ ...finding, code: finding.code ?? 'invalid' })),
  });
}

/** The upstream's own code for the whole request; undefined if the status says all. */
function codeFor(status: number, findings: readonly Finding[]): string | undefined {
  const own = findings.find(({ field, code }) => field === null && code)?.code;
  if (own && !FIXED_NAMES.has(status)) return own;
  const namesFields = status === 400 && findings.some(({ field }) => field !== null);
  return namesFields ? 'validation_failed' : undefined;
}

/** A problem by its media type. It is read as if it had `status` and `errors`, which it may leave out. */
const PROBLEM = /^application\/problem\+json *(?:;|$)/i;

/** Where in a body a value is. */
interface Place {
  readonly field: string | null;
  readonly depth: number;
  /** In a list, where an error may name its field. */
  readonly isItem: boolean;
  /** Beside an error, or below that. A bare text there may be anything: an id, a time, a line of a stack. */
  readonly isBeside: boolean;
}

const TOP: Place = { field: null, depth: 0, isItem: false, isBeside: false };

/** Checking against this schema leaves out a member `__proto__`. */
const anObject = z.record(z.string(), z.unknown());

/** An object with a text, a code or `errors` is itself an error, and its other members are beside one. */
function findingsIn(value: unknown, place: Place): Finding[] {
  if (place.depth > MAX_DEPTH) return [];
  if (typeof value === 'string') return findingOf(usable(value), place.field);
  const inner = { ...place, depth: place.depth + 1, isItem: Array.isArray(value) };
  if (Array.isArray(value)) return value.flatMap((item) => findingsIn(item, inner));
  const { data: object } = anObject.safeParse(value);
  if (!object) return [];
  const text = textIn(object, TEXTS, place);
  const code = typeof object['code'] === 'string' && isCode(object['code']) ? object['code'] : undefined;
  const named = place.isItem && (text || code) ? textIn(object, NAMES, place) : '';
  const field = named === '' ? place.field : pathOf(null, dotted(named));
  const own = findingOf(text, field, code);
  const isBeside =
    place.isBeside || own.length > 0 || isPlainObject(object['errors']) || Array.isArray(object['errors']);
  const members = Object.entries(object).filter(
    ([name, member]) => typeof member === 'object' || !(isBeside || isOddCode(name, member)),
  );
  const of = (name: string) => ({ ...inner, field: pathOf(field, name), isBeside: isBeside && !LISTS.includes(name) });
  return [...own, ...members.flatMap(([name, member]) => findingsIn(member, of(name)))];
}

/** Members with the text of an error. The first usable one counts. */
const TEXTS = ['message', 'detail', 'error', 'title', 'reason'];

/** Members of an item with the name of its field: Portico's own, and those of DRF packages, RFC 9457 and RFC 7807. */
const NAMES = ['field', 'attr', 'pointer', 'name'];

/** Members that may as well be fields themselves. Each counts only with one of these, and not beside an error. */
const ONLY_WITH: Readonly<Record<string, readonly string[]>> = {
  title: ['type', 'status', 'instance'],
  reason: ['name'],
  name: ['reason'],
};

function textIn(object: Readonly<Record<string, unknown>>, names: readonly string[], { isBeside }: Place): string {
  const counts = (name: string) => ONLY_WITH[name]?.some((other) => !isBeside && other in object) ?? true;
  const texts = names.filter(counts).map((name) => usable(object[name]));
  return texts.find((text) => text !== '') ?? '';
}

const usable = (text: unknown): string => (typeof text === 'string' && !MARKUP.test(text) ? text.trim() : '');

/** A JSON pointer (RFC 6901), `#/a/0` or `/a/0`, becomes `a.0`. */
function dotted(name: string): string {
  if (!/^#?(?:\/|$)/.test(name)) return name;
  const parts = name.split('/').slice(1);
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')).join('.');
}

/** A `code` that is neither a code nor a sentence may be anything, even a secret. */
const isOddCode = (name: string, value: unknown) => name === 'code' && typeof value === 'string' && !/\s/.test(value);

/** An error needs a text or a code; without a text, the code is the message. */
const findingOf = (text: string, field: string | null, code?: string): Finding[] =>
  text === '' && code === undefined ? [] : [{ code, message: text || String(code), field }];

/** A problem whose `errors` repeat the whole, as ours do, would list it twice. */
const distinct = (findings: readonly Finding[]) => [
  ...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values(),
];

/** Conceals before it shortens: half a credential could no longer be recognized. */
function concealed({ code, message, field }: Finding, conceal: (text: string) => string): Finding {
  return {
    code: code !== undefined && conceal(code) === code ? code : undefined,
    message: conceal(message).slice(0, MAX_MESSAGE),
    field: field === null ? null : conceal(field).slice(0, MAX_MESSAGE),
  };
}

/** Names of lists of errors, whatever stands beside them. */
const LISTS = ['errors', 'invalid-params', 'invalid_params', 'invalidParams'];

/** Names that hold errors of the whole request, not of a field. ASP.NET has an empty one. */
const WHOLE = new Set([...LISTS, 'error', 'non_field_errors', '__all__', '']);

function pathOf(field: string | null, name: string): string | null {
  if (WHOLE.has(name)) return field;
  return field === null ? name : `${field}.${name}`;
}

/** Shorter words are replaced only as whole words: a credential `a` is part of every text. */
const LONG_WORD = 8;

/** Replaces the secrets, as they are or as a JSON pointer with them was read, and the upstream's host in upper or lower case. */
function concealing(secrets: readonly string[], { host, hostname }: URL): (text: string) => string {
  const forms = new Set(secrets.flatMap((word) => [word, word.replaceAll('/', '.')]));
  const words = [...forms].toSorted((a, b) => b.length - a.length); // one may be a part of another
  const hosts = [host, hostname.replace(/\.$/, '')].map((word) => patternOf(word, 'gi'));
  const patterns = [...words.map((word) => patternOf(word, 'g')), ...hosts];
  return (text) => patterns.reduce((rest, pattern) => rest.replaceAll(pattern, '…'), text);
}

/**
 * The words of headers that have to be concealed: the last word of each value, since a scheme may stand before it, and all
 * long ones. Other words may be in any text. `headers`: names and values in turn.
 */
export function concealableIn(headers: readonly string[]): string[] {
  const values = headers.filter((_, at) => at % 2 === 1);
  const words = values.map((value) => value.split(/[\s,;="]+/).filter(Boolean));
  return words.flatMap((of) => of.filter((word, at) => word.length >= LONG_WORD || at === of.length - 1));
}

/** Characters of a word that are searched for. Searching for all 4,096 of a credential could take their product with the text's length. */
const SEARCHED = 32;

/** Finds a word of visible characters. */
function patternOf(word: string, flags: string): RegExp {
  const isLong = word.length >= LONG_WORD;
  const literal = word.slice(0, SEARCHED).replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
  const rest = word.length > SEARCHED ? String.raw`[\x21-\x7e]{0,${word.length - SEARCHED}}` : '';
  return new RegExp(isLong ? literal + rest : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, flags);
}
