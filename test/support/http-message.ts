/** One HTTP/1.1 message as it came: nothing is dropped or repaired. */
export interface Message {
  readonly startLine: string;
  readonly rawHeaders: readonly (readonly [name: string, value: string])[];
  /** Lowercased names; the values of a repeated one joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Framing {
  readonly kind: 'request' | 'response';
  /** The response answers a HEAD. */
  readonly head?: boolean;
  /** The peer has closed: what is there is all there will be. */
  readonly ended?: boolean;
}

/** Strict on purpose: what a lenient peer would let pass is what request smuggling is made of. */
export class MalformedMessage extends Error {}

const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*$/;

const malformed = (what: string): never => {
  throw new MalformedMessage(what);
};

const fieldOf = (line: string): readonly [string, string] => {
  const [, name, value] = FIELD.exec(line) ?? malformed(`header line ${JSON.stringify(line)}`);
  return [name ?? '', value ?? ''];
};

const joined = (rawHeaders: Message['rawHeaders']) => {
  const headers: Record<string, string> = {};
  for (const [name, value] of rawHeaders) {
    const key = name.toLowerCase();
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
  }
  return headers;
};

const headOf = (text: string) => {
  const [startLine = '', ...lines] = text.split('\r\n');
  const rawHeaders = lines.map(fieldOf);
  return { startLine, rawHeaders, headers: joined(rawHeaders) };
};

/** A body and where it ends in the bytes after the head. */
type Body = readonly [body: Buffer, end: number];

const EMPTY: Body = [Buffer.alloc(0), 0];

/** Where the trailer section that begins at `start` ends, or -1 while it is not all there. */
const trailerEnd = (bytes: Buffer, start: number) => {
  if (bytes.indexOf('\r\n', start) === start) return start + 2;
  const end = bytes.indexOf('\r\n\r\n', start);
  return end < 0 ? -1 : end + 4;
};

const chunkedBody = (bytes: Buffer): Body | null => {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const eol = bytes.indexOf('\r\n', at);
    if (eol < 0) return null;
    const line = bytes.toString('latin1', at, eol);
    const size = /^[0-9a-f]+(;.*)?$/i.test(line) ? Number.parseInt(line, 16) : malformed(`chunk size ${line}`);
    const start = eol + 2;
    if (size === 0) {
      const end = trailerEnd(bytes, start);
      return end < 0 ? null : [Buffer.concat(parts), end];
    }
    at = start + size + 2;
    if (bytes.length < at) return null;
    if (bytes.toString('latin1', at - 2, at) !== '\r\n') malformed('a chunk longer than its size');
    parts.push(bytes.subarray(start, start + size));
  }
};

const sizedBody = (bytes: Buffer, length: string): Body | null => {
  if (!/^\d+$/.test(length)) malformed(`content-length ${length}`);
  const end = Number(length);
  return bytes.length < end ? null : [bytes.subarray(0, end), end];
};

const neverHasBody = (startLine: string, { kind, head }: Framing) =>
  kind === 'response' && (head === true || /^HTTP\/1\.1 (1\d\d|204|304)\b/.test(startLine));

const bodyOf = (bytes: Buffer, message: Omit<Message, 'body'>, framing: Framing): Body | null => {
  const { 'content-length': length, 'transfer-encoding': coding } = message.headers;
  if (neverHasBody(message.startLine, framing)) return EMPTY;
  if (length !== undefined && coding !== undefined) malformed('content-length and transfer-encoding');
  if (coding !== undefined) return coding.toLowerCase() === 'chunked' ? chunkedBody(bytes) : malformed(coding);
  if (length !== undefined) return sizedBody(bytes, length);
  if (framing.kind === 'request') return EMPTY;
  return framing.ended ? [bytes, bytes.length] : null;
};

/**
 * The first message in the bytes and what follows it; null while it is not all there. Starts over at each call: the
 * bytes of a test are few, and no state means nothing to get wrong when they arrive in pieces.
 */
export const takeMessage = (bytes: Buffer, framing: Framing): readonly [Message, rest: Buffer] | null => {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = headOf(bytes.toString('latin1', 0, end));
  const after = bytes.subarray(end + 4);
  const body = bodyOf(after, head, framing);
  return body && [{ ...head, body: body[0] }, after.subarray(body[1])];
};
