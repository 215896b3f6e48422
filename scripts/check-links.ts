import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import GithubSlugger from 'github-slugger';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { toString } from 'mdast-util-to-string';
import { visit } from 'unist-util-visit';

/** A link of a page: the file it leads to, and the heading in it. */
interface Link {
  readonly line: number | undefined;
  readonly path: string;
  readonly heading: string | undefined;
}

const PAGES = ['*.md', 'docs/**/*.md', 'deploy/**/*.md', 'client/*.md', 'examples/*/*.md'];

/** Links of a page that lead to files of ours. */
function linksIn(page: string): Link[] {
  const links: Link[] = [];
  visit(fromMarkdown(readFileSync(page)), ['link', 'image', 'definition'], (node) => {
    if (!('url' in node) || /^[a-z][a-z0-9+.-]*:/i.test(node.url)) return;
    const [path = '', heading] = node.url.split('#');
    links.push({ line: node.position?.start.line, path: path === '' ? page : join(dirname(page), path), heading });
  });
  return links;
}

/** As GitHub names the headings of a page. */
function headingsOf(page: string): Set<string> {
  const slugger = new GithubSlugger();
  const headings = new Set<string>();
  visit(fromMarkdown(readFileSync(page)), 'heading', (node) => void headings.add(slugger.slug(toString(node))));
  return headings;
}

function isBroken({ path, heading }: Link): boolean {
  if (!existsSync(path)) return true;
  return heading !== undefined && !(statSync(path).isFile() && headingsOf(path).has(heading));
}

const pages = globSync(PAGES).filter((page) => !page.includes('node_modules'));
const broken = pages.flatMap((page) =>
  linksIn(page)
    .filter(isBroken)
    .map(
      ({ line, path, heading }) =>
        `${page}:${line}: ${relative('.', path)}${heading === undefined ? '' : `#${heading}`}`,
    ),
);
for (const line of broken) console.error(`broken link: ${line}`);
console.log(`${pages.length} pages, ${broken.length} broken links`);
process.exitCode = broken.length > 0 ? 1 : 0;
