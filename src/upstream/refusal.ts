import * as z from 'zod/mini';
import { type ErrorItem, GatewayError, isCode } from '../core/errors.ts';
import { parsedJson } from '../core/json.ts';
import type { Table } from './table.ts';
import { retryAfterOf } from './answer-headers.ts';
import type { RawAnswer } from './transport.ts';

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
  const findings = findingsIn(isShort ? parsedJson(body.text) : undefined)
    .slice(0, MAX_ITEMS)
    .map((finding) => concealed(finding, conceal));
  const code = codeFor(status, findings);
  const whole = findings.find((finding) => finding.field === null && finding.message !== finding.code)?.message;
  const known = code === undefined ? undefined : refusals.get(code);
  const documented = known?.status === status ? known : undefined; // with another status it has another meaning
  return GatewayError.refusal(code, status, {
    title: known?.title,
    detail: whole ?? documented?.description ?? (code === 'validation_failed' ? FIELDS_REFUSED : WITHOUT_WORDS[status]),
    retryAfter: status === 429 ? (retryAfterOf(raw, wall) ?? RATE_LIMITED_SECONDS) : undefined,
    ...(status === 401 && { headers: { 'WWW-Authenticate': 'Token' } }),
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

/** Checking against this schema leaves out a member `__proto__`. */
const anObject = z.record(z.string(), z.unknown());

/** An object with a text or a code is itself an error, and of its other members only lists and objects are fields. */
function findingsIn(item: unknown, field: string | null = null, depth = 0): Finding[] {
  if (depth > MAX_DEPTH) return [];
  if (typeof item === 'string') return findingOf(item, field);
  if (Array.isArray(item)) return item.flatMap((inner) => findingsIn(inner, field, depth + 1));
  const { data: object } = anObject.safeParse(item);
  if (!object) return [];
  const { code, message, detail, error } = object;
  const text = [message, detail, error].find((part) => typeof part === 'string') ?? '';
  const own = findingOf(text, field, typeof code === 'string' && isCode(code) ? code : undefined);
  const fields = Object.entries(object).filter(([name, value]) =>
    own.length > 0 ? isField(name, value) : !isOddCode(name, value),
  );
  return [...own, ...fields.flatMap(([name, value]) => findingsIn(value, pathOf(field, name), depth + 1))];
}

/** Members that are an object's own error; with a list, `code` and `detail` are fields. */
const OWN = ['message', 'detail', 'error', 'code'];

const isField = (name: string, value: unknown) =>
  typeof value === 'object' && (!OWN.includes(name) || Array.isArray(value));

/** A `code` that is neither a code nor a sentence may be anything, even a secret. */
const isOddCode = (name: string, value: unknown) => name === 'code' && typeof value === 'string' && !/\s/.test(value);

/** An error needs a text or a code; without a usable text, the code is the message. */
function findingOf(text: string, field: string | null, code?: string): Finding[] {
  const message = MARKUP.test(text) ? '' : text.trim();
  return message === '' && code === undefined ? [] : [{ code, message: message || String(code), field }];
}

/** Conceals before it shortens: half a credential could no longer be recognized. */
function concealed({ code, message, field }: Finding, conceal: (text: string) => string): Finding {
  return {
    code: code !== undefined && conceal(code) === code ? code : undefined,
    message: conceal(message).slice(0, MAX_MESSAGE),
    field: field === null ? null : conceal(field),
  };
}

/** Names that hold errors of the whole request, not of a field. */
const WHOLE = new Set(['non_field_errors', '__all__', 'errors', 'error']);

function pathOf(field: string | null, name: string): string | null {
  if (WHOLE.has(name)) return field;
  return field === null ? name : `${field}.${name}`;
}

/** Shorter words are replaced only as whole words: a credential `a` is part of every text. */
const LONG_WORD = 8;

/** Replaces the secrets, and the upstream's host in upper or lower case, in a text. */
function concealing(secrets: readonly string[], { host, hostname }: URL): (text: string) => string {
  const words = secrets.toSorted((a, b) => b.length - a.length); // one may be a part of another
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
