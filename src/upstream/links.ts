import { membersOf, stringAt } from '../core/json.ts';

const LINKS = new Set(['next', 'previous']);

/** Where a page of results came from: the upstream's `{base_url}`, and a path below it. */
interface Page {
  readonly upstream: URL;
  readonly path: string;
}

/**
 * Replaces the upstream's page links by ones with the page's own path, their query and no origin. `links` are the places
 * where the gateway's origin has to be inserted. All else stays as it came.
 */
export function localLinks(text: string, page: Page): { text: string; links: number[] } {
  const links: number[] = [];
  let local = '';
  let copied = 0;
  for (const member of membersOf(text)) {
    if (!LINKS.has(member.name) || text[member.start] !== '"') continue;
    local += text.slice(copied, member.start);
    const link = localLink(member.name, stringAt(text, member), page);
    if (link !== undefined) links.push(local.length + 1);
    local += link === undefined ? 'null' : JSON.stringify(link);
    copied = member.end;
  }
  return links.length === 0 && copied === 0 ? { text, links } : { text: local + text.slice(copied), links };
}

/**
 * The path of the page with the query of a link to another page of its kind. Undefined for any other link, which no client
 * could follow here, and for a `next` without a query: it would lead back to the first page for ever.
 */
function localLink(name: string, link: string, { upstream, path }: Page): string | undefined {
  const [said = ''] = link.split('#');
  const url = said.trim() === '' ? null : URL.parse(said, upstream.origin + path);
  if (!url || !/^https?:$/.test(url.protocol) || !isSame(url.pathname, path)) return undefined;
  return name === 'next' && url.search === '' ? undefined : path + url.search;
}

/** Whether two paths are the same but for what a proxy puts before one or takes off, the last slash and escapes. */
function isSame(path: string, other: string): boolean {
  const [one, two] = [plain(path), plain(other)] as const;
  return one.endsWith(two) || two.endsWith(one);
}

const plain = (path: string) => path.replaceAll(/%[2-7][0-9a-f]/gi, decodeURIComponent).replace(/\/$/, '');

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
