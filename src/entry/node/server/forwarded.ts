/** A name, and its value with or without quotes; then the next one, or the next hop. */
const PAIR = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+))[ \t]*)?([,;]|$)/y;

/** More than any way has. Each takes time, and what a client sends may have thousands. */
const MOST_PAIRS = 256;

/**
 * The hops of a `Forwarded` (RFC 7239), the last one being that of the nearest proxy; none where any of it is malformed or it has too many pairs, since
 * what a client opens could otherwise swallow what its proxy says.
 */
export function forwardedIn(header: string | undefined): readonly ReadonlyMap<string, string>[] | undefined {
  if (header === undefined) return undefined;
  let hop = new Map<string, string>();
  const hops = [hop];
  PAIR.lastIndex = 0;
  let pairs = 0;
  for (let next: string | undefined = ','; next !== '';) {
    const found = PAIR.exec(header);
    if (!found || ++pairs > MOST_PAIRS) return [];
    const [, given, quoted, plain = ''] = found;
    const name = given?.toLowerCase() ?? '';
    if (name !== '' && hop.has(name)) return [];
    hop.set(name, quoted?.replaceAll(/\\(.)/g, '$1') ?? plain);
    next = found[4];
    if (next !== ',') continue;
    hop = new Map();
    hops.push(hop);
  }
  return hops;
}
