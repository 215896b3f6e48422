import { posix, relative } from 'node:path';

/** What is used here of markdown-it, which the site brings. */
interface Token {
  tag: string;
  readonly type: string;
  readonly children: Token[] | null;
  attrs: [string, string][] | null;
}
interface State {
  readonly tokens: readonly Token[];
  readonly env: { readonly path: string; readonly realPath?: string };
}
export interface MarkdownIt {
  readonly core: { readonly ruler: { push(name: string, rule: (state: State) => void): void } };
}

interface Site {
  readonly root: string;
  /** The page of the site that a file of the repository is; undefined if it is none. */
  readonly siteOf: (file: string) => string | undefined;
  /** The repository on its forge. */
  readonly source: string | undefined;
}

/**
 * Links of the pages are those of the repository. To another page they lead within the site, to any other file to the
 * forge. If nobody knows where that is, only their text is left.
 */
export function linksFor(md: MarkdownIt, { root, siteOf, source }: Site): void {
  md.core.ruler.push('links_of_the_repository', ({ tokens, env }) => {
    const from = posix.dirname(relative(root, env.realPath ?? env.path));
    for (const { children } of tokens) for (const link of linksIn(children ?? [])) lead(link, from);
  });

  function lead([open, close]: readonly [Token, Token], from: string): void {
    const href = open.attrs?.find(([name]) => name === 'href');
    if (href === undefined || /^([a-z][a-z0-9+.-]*:|#)/i.test(href[1])) return;
    const [path = '', heading] = href[1].split('#');
    const file = posix.join(from, path).replace(/\/$/, '');
    const target = siteOf(file) ?? (source === undefined ? undefined : `${source}/blob/main/${file}`);
    if (target === undefined) {
      for (const token of [open, close]) Object.assign(token, { tag: 'span', attrs: null });
      return;
    }
    const address = target.includes(':') ? target : `/${target}`;
    href[1] = heading === undefined ? address : `${address}#${heading}`;
  }
}

/** The beginning and the end of each: links do not nest. */
function linksIn(tokens: readonly Token[]): readonly (readonly [Token, Token])[] {
  const [opens, closes] = ['link_open', 'link_close'].map((type) => tokens.filter((token) => token.type === type));
  return (opens ?? []).flatMap((open, at) => {
    const close = closes?.[at];
    return close === undefined ? [] : [[open, close] as const];
  });
}
