/**
 * Finds where members and items of JSON text begin and end, without parsing it. Bodies are cut and spliced by these
 * spans, so that `25.0` and integers beyond 2^53 stay as they are. The text has to be valid JSON.
 */

export interface Span {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

export interface Member extends Span {
  readonly name: string;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

const opens = (code: number) => code === OPEN_BRACE || code === OPEN_BRACKET;

const closes = (code: number) => code === CLOSE_BRACE || code === CLOSE_BRACKET;

export function skipSpace(text: string, at: number): number {
  let position = at;
  while (isSpace(text.charCodeAt(position))) position++;
  return position;
}

/** Where a string ends. `at`: its opening quote. */
export function endOfString(text: string, at: number): number {
  return closingQuote(text, at) + 1;
}

/** The place of the closing quote; negative if there is none. */
function closingQuote(text: string, opening: number): number {
  let position = text.indexOf('"', opening + 1);
  while (position > 0 && isEscaped(text, position)) position = text.indexOf('"', position + 1);
  return position;
}

function isEscaped(text: string, quote: number): boolean {
  let position = quote - 1;
  while (text.charCodeAt(position) === BACKSLASH) position--;
  return (quote - position) % 2 === 0;
}

function endOfValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return endOfString(text, at);
  if (!opens(first)) return endOfScalar(text, at);
  let depth = 0;
  let position = at;
  do {
    const code = text.charCodeAt(position);
    if (code === QUOTE) position = endOfString(text, position) - 1;
    else if (opens(code)) depth++;
    else if (closes(code)) depth--;
    position++;
  } while (depth > 0);
  return position;
}

export function endOfScalar(text: string, at: number): number {
  let position = at;
  while (position < text.length && !isSpace(text.charCodeAt(position)) && !',}]'.includes(text[position] ?? ''))
    position++;
  return position;
}

/** The members of an object, in order; none where there is no object at `at`. */
export function membersOf(text: string, at = 0): Member[] {
  const members: Member[] = [];
  walk(text, at, OPEN_BRACE, (position) => {
    const colon = endOfString(text, position);
    const start = skipSpace(text, skipSpace(text, colon) + 1);
    const end = endOfValue(text, start);
    members.push({ name: stringAt(text, { start: position, end: colon }), start, end });
    return end;
  });
  return members;
}

/** The items of an array, in order; none where there is no array at `at`. */
export function itemsOf(text: string, at = 0): Span[] {
  const items: Span[] = [];
  walk(text, at, OPEN_BRACKET, (start) => {
    const end = endOfValue(text, start);
    items.push({ start, end });
    return end;
  });
  return items;
}

/** Calls `take` with the place of each member or item; `take` returns its end. Returns the end of the object or array. */
function walk(text: string, at: number, opening: number, take: (position: number) => number): number {
  let position = skipSpace(text, at);
  if (text.charCodeAt(position) !== opening) return position;
  position = skipSpace(text, position + 1);
  while (position < text.length && !closes(text.charCodeAt(position))) {
    position = skipSpace(text, take(position));
    if (text.charCodeAt(position) === COMMA) position = skipSpace(text, position + 1);
  }
  return position + 1;
}

/** The value of a member; the last one of a name counts, as in `JSON.parse`. */
export function memberOf(text: string, name: string, at = 0): Span | undefined {
  const member = membersOf(text, at).findLast((one) => one.name === name);
  return member && { start: member.start, end: member.end };
}

export const cut = (text: string, { start, end }: Span) => text.slice(start, end);

/** A JSON string without its quotes and escapes. */
export function stringAt(text: string, { start, end }: Span = { start: 0, end: text.length }): string {
  const inner = text.slice(start + 1, end - 1);
  return inner.includes('\\') ? String(JSON.parse(text.slice(start, end))) : inner;
}

/**
 * How deep arrays and objects are nested, and roughly how many members, items, arrays and objects there are. The text need not
 * be valid JSON: it is refused by this before it is parsed. Deep nesting breaks `JSON.stringify` later, and many small values
 * take a hundred times their size.
 */
export function extentOf(text: string): { readonly depth: number; readonly values: number } {
  let [level, depth, values] = [0, 0, 0];
  for (let position = 0; position < text.length; position++) {
    const code = text.charCodeAt(position);
    if (code === QUOTE) {
      position = closingQuote(text, position);
      if (position < 0) break; // no JSON, which parsing it will show
    } else if (opens(code)) {
      depth = Math.max(depth, ++level);
      values++;
    } else if (closes(code)) level--;
    else if (code === COMMA) values++;
  }
  return { depth, values };
}

/** How deep JSON may be nested. */
export const MAX_DEPTH = 64;

export function isTooDeep(text: string): boolean {
  // Most texts have fewer brackets than that at all. Then the text is not walked through.
  return hasMore(text, '{', '[', MAX_DEPTH) && extentOf(text).depth > MAX_DEPTH;
}

function hasMore(text: string, one: string, other: string, than: number): boolean {
  let count = 0;
  for (const bracket of [one, other])
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) if (++count > than) return true;
  return false;
}

/** An integer of fewer than sixteen digits is always exact. */
const MAY_ROUND = /\d{16}/;

/** As `JSON.parse`, but integers that JavaScript would round stay text. */
export const valueOf = (text: string): unknown =>
  MAY_ROUND.test(text) ? (JSON.parse(text, exact) as unknown) : (JSON.parse(text) as unknown);

/** `source` is the text of a number (ECMAScript, JSON.parse source text access). */
function exact(_name: string, value: unknown, { source }: { readonly source?: string } = {}): unknown {
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '');
  return isRounded ? source : value;
}

/** The value; undefined if the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Whether the text is JSON, and not nested too deeply. */
export const isJson = (text: string): boolean => !isTooDeep(text) && parsedJson(text) !== undefined;

/** Whether the value is an object as a literal makes it: no list, no instance of a class, no promise. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
