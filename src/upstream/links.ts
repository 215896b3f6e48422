import { type Member, membersOf, stringAt } from '../core/json.ts';
import { namesOf, type Page } from './page.ts';

/** Where a page came from: the upstream's `{base_url}`, and a path below it. */
interface Source {
  readonly upstream: URL;
  readonly path: string;
}

/** A text and the places in it where the gateway's origin has to be inserted. */
export interface Linked {
  readonly text: string;
  readonly links: readonly number[];
}

/**
 * Replaces the upstream's page links by ones with the page's own path, their query and no origin. All else stays as it came.
 */
export function localLinks(text: string, { next, links: others = [] }: Page, source: Source): Linked {
  const wanted = others.map((pointer) => ({ names: namesOf(pointer), isNext: false }));
  if (next !== undefined) wanted.push({ names: namesOf(next), isNext: true });
  const links: number[] = [];
  let local = '';
  let copied = 0;
  for (const member of linksIn(text, wanted)) {
    local += text.slice(copied, member.start);
    const link = localLink(stringAt(text, member), member.isNext, source);
    if (link !== undefined) links.push(local.length + 1);
    local += link === undefined ? 'null' : JSON.stringify(link);
    copied = member.end;
  }
  return links.length === 0 && copied === 0 ? { text, links } : { text: local + text.slice(copied), links };
}

interface Wanted {
  readonly names: readonly string[];
  readonly isNext: boolean;
}

/** The texts that are there, in their order, also where an object has one name twice. */
function linksIn(text: string, wanted: readonly Wanted[], at = 0): (Member & Wanted)[] {
  return membersOf(text, at).flatMap((member) => {
    const named = wanted.filter(({ names }) => names[0] === member.name);
    const found = named.findLast(({ names }) => names.length === 1); // the last is `next`
    if (found && text[member.start] === '"') return { ...member, ...found };
    const inside = named.filter(({ names }) => names.length > 1).map(rest);
    return inside.length === 0 ? [] : linksIn(text, inside, member.start);
  });
}

const rest = ({ names, isNext }: Wanted): Wanted => ({ names: names.slice(1), isNext });

/** A link and its parameters. A quoted text has no `<`, so that the search goes over a header once. */
const LINK = /<([^<>]*)>((?:[^,<"]|"(?:[^"\\<]|\\[^<])*")*)/g;
const VISIBLE = /^[\t\x20-\x7e]*$/;
const TO_PAGE = /;\s*rel\s*=(?:\s*"|(?!\s*"))[^";,]*(?<=[\s"=])(?:(next)|prev|previous|first|last|self)(?=[\s";,]|$)/i;

/** A `Link` header (RFC 8288) with the links to other pages, each as in `localLinks`; undefined without any. */
export function localLinkHeader(header: string, source: Source): Linked | undefined {
  let text = '';
  const links: number[] = [];
  for (const [, target = '', parameters = ''] of header.matchAll(LINK)) {
    const relation = VISIBLE.test(parameters) ? TO_PAGE.exec(parameters) : null;
    const link = relation ? localLink(target, relation[1] !== undefined, source) : undefined;
    if (link === undefined) continue;
    text += text === '' ? '<' : ', <';
    links.push(text.length);
    text += `${link}>${parameters.trimEnd()}`;
  }
  return links.length === 0 ? undefined : { text, links };
}

/**
 * The path of the page with the query of a link to another page of its kind. Undefined for any other link, which no client
 * could follow here, and for a `next` without a query: it would lead back to the first page for ever.
 */
function localLink(link: string, isNext: boolean, { upstream, path }: Source): string | undefined {
  const [said = ''] = link.split('#');
  const url = said.trim() === '' ? null : URL.parse(said, upstream.origin + path);
  if (!url || !/^https?:$/.test(url.protocol) || !isSame(url.pathname, path)) return undefined;
  return isNext && url.search === '' ? undefined : path + url.search;
}

/** Whether two paths are the same but for what a proxy puts before one or takes off, the last slash and escapes. */
function isSame(path: string, other: string): boolean {
  const [one, two] = [plain(path), plain(other)] as const;
  return one.endsWith(two) || two.endsWith(one);
}

const plain = (path: string) => path.replaceAll(/%[2-7][0-9a-f]/gi, decodeURIComponent).replace(/\/$/, '');

/** The text with the gateway's origin in its links. Few texts have any. */
export function withOrigin({ text, links }: Linked, request: { readonly origin: string }): string {
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
