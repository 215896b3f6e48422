import { membersOf, stringAt } from '../core/json.ts';

const LINKS = new Set(['next', 'previous']);

/** Where a page of results came from: the upstream's `{base_url}`, and a path below it. */
interface Page {
  readonly upstream: URL;
  readonly path: string;
}

/**
 * Replaces the upstream's page links by ones with the same path and query and no origin. `links` are the places where
 * the gateway's origin has to be inserted. All else stays as it came.
 */
export function localLinks(text: string, page: Page): { text: string; links: number[] } {
  const links: number[] = [];
  let local = '';
  let copied = 0;
  for (const member of membersOf(text)) {
    if (!LINKS.has(member.name) || text[member.start] !== '"') continue;
    local += text.slice(copied, member.start);
    const link = localLink(stringAt(text, member), page);
    if (link !== undefined) links.push(local.length + 1);
    local += link === undefined ? 'null' : JSON.stringify(link);
    copied = member.end;
  }
  return links.length === 0 && copied === 0 ? { text, links } : { text: local + text.slice(copied), links };
}

/** Path and query of a link. Undefined for an unusable one, which might show the upstream's host: the client gets null. */
function localLink(link: string, { upstream, path }: Page): string | undefined {
  const prefix = upstream.pathname.replace(/\/$/, '');
  const url = URL.parse(link, upstream.origin + prefix + path);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  const local = url.pathname.startsWith(`${prefix}/`) ? url.pathname.slice(prefix.length) : url.pathname;
  return (local === '/' ? path : local) + url.search;
}

/** The text with the gateway's origin in its links. Few texts have any. */
export function withOrigin(
  { text, links }: { readonly text: string; readonly links: readonly number[] },
  request: { readonly origin: string },
): string {
  if (links.length === 0) return text;
  const { origin } = request; // a getter that computes it
  let copied = 0;
  let whole = '';
  for (const place of links) {
    whole += text.slice(copied, place) + origin;
    copied = place;
  }
  return whole + text.slice(copied);
}
