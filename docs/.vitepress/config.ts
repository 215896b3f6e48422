import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { slug } from 'github-slugger';
import { linksFor, type MarkdownIt } from './links.ts';

// The site has the pages as they are on the forge. What differs between the two is settled here and in links.ts.

const ROOT = join(import.meta.dirname, '../..');

/** The sidebar: pages of docs/ by their names, and files elsewhere by their paths. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'Use it': ['calling', 'errors', 'client/README.md', 'browser', 'phone', 'tanstack', 'agents'],
  'Extend it': ['extending', 'frameworks'],
  'Run it': ['deploying', 'configuration', 'scale', 'trouble'],
  Inside: ['architecture', 'contract', 'upstream-api', 'CONTRIBUTING.md', 'CHANGELOG.md'],
};

/** Where the source is; the forge's own variables say it. */
const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name, DOCS_BASE: base } = process.env;
const source = server !== undefined && name !== undefined ? `${server}/${name}` : undefined;

/** Where a file of the repository is on the site. */
const AT: Readonly<Record<string, string>> = {
  'README.md': 'index.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'client/README.md': 'client.md',
};
const siteOf = (file: string): string | undefined => AT[file] ?? /^docs\/([^/]+\.md)$/.exec(file)?.[1];

const fileOf = (page: string) => (page.endsWith('.md') ? page : `docs/${page}.md`);
const titleOf = (file: string) => /^# (.*)$/m.exec(readFileSync(join(ROOT, file), 'utf8'))?.[1]?.replaceAll('`', '');
const entry = (file: string) => ({ text: titleOf(file) ?? file, link: `/${siteOf(file)?.replace(/\.md$/, '') ?? ''}` });

/** Without a page that does not exist. A page that no group names is in the last one, so that none is lost. */
function sidebar() {
  const named = Object.values(GROUPS).flat().map(fileOf);
  const others = readdirSync(join(ROOT, 'docs'))
    .filter((file) => file.endsWith('.md') && !named.includes(`docs/${file}`))
    .map((file) => `docs/${file}`);
  const groups = [...Object.entries(GROUPS), ['More', others]] as const;
  return groups
    .map(([text, pages]) => ({
      text,
      items: pages
        .map(fileOf)
        .filter((file) => existsSync(join(ROOT, file)))
        .map(entry),
    }))
    .filter(({ items }) => items.length > 0);
}

export default {
  srcDir: '..',
  srcExclude: ['!(docs|client)/**/*', '!(README|CONTRIBUTING|CHANGELOG).md'],
  rewrites: (file: string) => siteOf(file) ?? file,
  base: base === undefined || base === '' ? '/' : `${base}/`,
  lang: 'en',
  title: 'Portico',
  description: 'A backend-for-frontend gateway, for Node and Cloudflare Workers.',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    // `<ID>` is text, as on the forge once it stands in code; and `contract.md` is no host.
    html: false,
    linkify: false,
    anchor: { slugify: slug },
    config: (md: MarkdownIt) => linksFor(md, { root: ROOT, siteOf, source }),
  },
  vite: {
    plugins: [
      {
        name: 'found-when-asked-for',
        // Vite looks for them from the root of the repository, where they are not installed.
        configResolved: ({ optimizeDeps }: { optimizeDeps: { include: string[] } }) => void (optimizeDeps.include = []),
      },
    ],
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sidebar(),
    outline: [2, 3],
    ...(source !== undefined && { socialLinks: [{ icon: 'github', link: source }] }),
  },
};
