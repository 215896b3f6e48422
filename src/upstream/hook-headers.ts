import { isPlainObject } from '../core/json.ts';

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, with blanks between; or nothing. */
const VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;

/**
 * What a hook may not set: how a message is framed and read, what the gateway itself says in it, what makes the
 * answer another one than the cache takes it for, and cookies.
 */
const OURS = new Set(
  (
    'host content-length transfer-encoding connection te upgrade trailer keep-alive expect content-type content-encoding ' +
    'accept accept-encoding via user-agent idempotency-key x-request-id traceparent tracestate cookie range if-match ' +
    'if-none-match if-modified-since if-unmodified-since if-range'
  ).split(' '),
);

/**
 * The headers that a hook has given: names, in lower case, and values in turn.
 * @param hook for messages
 * @param taken further names, in lower case, that are not its to set
 * @throws TypeError in words for what cannot be sent or is not its to set; no value is quoted
 */
export function checkHeaders(hook: string, headers: unknown, taken: readonly string[] = []): string[] {
  if (headers instanceof Promise) headers.catch(() => undefined); // nobody else hears of its failure
  if (!isPlainObject(headers)) throw new TypeError(`${hook} gives no record of headers`);
  const seen = new Set(taken);
  return Object.entries(headers).flatMap(([given, value]) => {
    const name = checkName(hook, given);
    if (seen.has(name)) throw new TypeError(`${hook} sets \`${name}\`, which is set already`);
    seen.add(name);
    if (typeof value !== 'string' || !VALUE.test(value))
      throw new TypeError(
        `${hook} sets \`${name}\` to something that cannot be sent: expected visible ASCII characters`,
      );
    return [name, value];
  });
}

/**
 * The name in lower case.
 * @throws TypeError
 */
export function checkName(hook: string, given: string): string {
  const name = given.toLowerCase();
  if (!NAME.test(given)) throw new TypeError(`${hook} names a header that cannot be sent`);
  if (OURS.has(name) || name.startsWith('proxy-'))
    throw new TypeError(`${hook} sets \`${name}\`, which is the gateway's`);
  return name;
}
