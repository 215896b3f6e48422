import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { json, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts';
import { folderWith, killAll, ROOT, run } from '../../support/process.ts';
import { freePort } from '../../support/ports.ts';
import { call } from '../../support/http.ts';
import { installed, startIn } from './installed.ts';

const token = 'key-of-a-reader-of-the-page';

/** The page's code, by the heading that it stands under, each in a folder of its own. */
const PAGE = fromMarkdown(readFileSync(join(ROOT, 'docs/extending.md'), 'utf8'));

function codeOfPage() {
  const blocks = new Map<string, string>();
  let heading = '';
  for (const node of PAGE.children) {
    if (node.type === 'heading') heading = node.children.map((one) => ('value' in one ? one.value : '')).join('');
    if (node.type === 'code' && node.lang === 'ts') blocks.set(heading, node.value);
  }
  return blocks;
}

const BLOCKS = codeOfPage();

/** The only block of the page that is in this language. */
const textIn = (lang: string) =>
  PAGE.children.flatMap((node) => (node.type === 'code' && node.lang === lang ? [node.value] : [])).join();

const TITLES = [...BLOCKS.keys()];
const folderOf = (title: string) => `page-${TITLES.indexOf(title)}`;
const fileOf = (title: string) => /^\/\/ (\S+\.ts)\n/.exec(BLOCKS.get(title) ?? '')?.[1] ?? '';

let folder: string;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  folder = installed();
  for (const [title, code] of BLOCKS) {
    mkdirSync(join(folder, folderOf(title)));
    writeFileSync(join(folder, folderOf(title), fileOf(title)), code);
  }
  copyFileSync(join(ROOT, 'examples/extend.ts'), join(folder, 'extend.ts'));
  const compilerOptions = { module: 'nodenext', types: ['node'], strict: true, skipLibCheck: true, noEmit: true };
  const config = { compilerOptions, include: ['page-*/*.ts', 'extend.ts'] };
  writeFileSync(join(folder, 'tsconfig.page.json'), JSON.stringify(config));
  upstream = await startUpstream();
  upstream.on('GET /api/v2/subscription/', json(200, { plan: 3, payment_method: null, free_credits: 1 }));
  upstream.on('GET /api/v2/notification/', json(200, { count: 2, results: [] }));
  upstream.on('GET /api/v2/badge/', json(200, { count: 1, results: [{ title: 'Early bird' }] }));
  upstream.on('GET /api/v2/subuser/7/', json(200, { id: 7 }));
  upstream.on('GET /api/v2/proxy/activity/?search=7&page_size=10', json(200, { count: 0, results: [] }));
  upstream.on('GET /v1/books', json(200, { count: 0, results: [] }));
});

afterAll(async () => {
  await killAll();
  upstream.assertNoUnexpected();
  await upstream.close();
});

/** Starts a file that serves. */
async function started(file: string) {
  const url = await startIn.node(folder, { UPSTREAM_BASE_URL: upstream.url }, file);
  return (path: string) => call(url, { path, token });
}

const ofPage = (title: string) => started(join(folderOf(title), fileOf(title)));

const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });

test('the page’s code and the example compile', () => {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  expect(node(tsc, '-p', 'tsconfig.page.json').stdout).toBe('');
});

describe('on the page', () => {
  test('all code is of a file, and run here', () => {
    expect(TITLES).toEqual([
      'The smallest one',
      'Your middleware, your handlers',
      'An overview',
      'An endpoint of your upstream',
      'An upstream of your own',
      'On Workers',
      'A test of your own',
    ]);
    for (const title of TITLES) expect(fileOf(title)).not.toBe('');
  });

  test('the worker starts with its configuration, and answers', async () => {
    const title = 'On Workers';
    writeFileSync(join(folder, folderOf(title), 'wrangler.toml'), textIn('toml').replace('node_modules', '../$&'));
    const url = await startIn.workerd(join(folder, folderOf(title)), { UPSTREAM_BASE_URL: upstream.url });
    expect((await call(url, { path: '/api/v2/subscription/', token })).json).toMatchObject({ plan: 3 });
    expect((await call(url, { path: '/docs/swagger-ui.css' })).status).toBe(200);
  });

  test('the smallest gateway answers', async () => {
    const ask = await ofPage('The smallest one');
    expect((await ask('/api/v2/subscription/')).json).toMatchObject({ plan: 3 });
  });

  test('a middleware and a handler of one’s own run', async () => {
    const ask = await ofPage('Your middleware, your handlers');
    const greeting = await ask('/bff/v1/greeting');
    expect([greeting.json, greeting.headers['x-served-by']]).toEqual([{ plan: 3 }, 'our gateway']);
    expect((await ask('/api/v2/subscription/')).headers['x-served-by']).toBe('our gateway');
  });

  test.each(['An overview', 'An endpoint of your upstream'])('%s can be made', (title) => {
    const { status, stderr } = node(join(folderOf(title), fileOf(title)));
    expect([status, stderr]).toEqual([0, '']);
  });

  test('an upstream of one’s own has its calls, its overview and its hooks', async () => {
    const ask = await ofPage('An upstream of your own');
    expect((await ask('/v1/books')).status).toBe(200);
    expect((await ask('/bff/v1/shelf-overview')).json).toMatchObject({ data: { books: { count: 0 } } });
    expect(upstream.callsTo('GET /v1/books')[0]?.headers['authorization']).toBe(`Bearer ${token}`);
    expect((await ask('/v1/books/!')).json).toMatchObject({ help: 'https://help.example/unknown_endpoint' });
  });

  test('a test of one’s own passes', () => {
    const { status, stdout } = node('--test', join(folderOf('A test of your own'), 'app.test.ts'));
    expect([status, stdout]).toEqual([0, expect.stringMatching(/pass 1/)]);
  });
});

test('the example does each of it', async () => {
  const ask = await started('extend.ts');
  expect((await ask('/bff/v1/greeting')).json).toEqual({ plan: 3 });
  expect((await ask('/bff/v1/inbox-overview')).json).toMatchObject({
    data: { computed: { unread: 2, latest_badge: { title: 'Early bird' } } },
  });
  expect((await ask('/bff/v1/subuser-overview/7')).json).toMatchObject({ data: { subuser: { id: 7 } } });
  const nothing = await ask('/bff/v1/nothing');
  expect([nothing.json, nothing.headers['x-served-by']]).toMatchObject([
    { help: 'https://help.example/unknown_endpoint' },
    'extend',
  ]);
  for (const { headers } of upstream.callsTo('GET /api/v2/badge/')) expect(headers['x-partner']).toBe('extend');
});

const KIT = ['@sveltejs/kit@3.2.0', '@sveltejs/adapter-node@6.0.1', '@sveltejs/vite-plugin-svelte@7.3.1'];
const VITE = `import adapter from '@sveltejs/adapter-node';
import { sveltekit } from '@sveltejs/kit/vite';
export default { plugins: [sveltekit({ adapter: adapter() })] };`;

test('the route of SvelteKit in docs/frameworks.md hands requests to the gateway', async () => {
  const cwd = folderWith({ 'package.json': '{"type":"module"}', 'vite.config.js': VITE });
  const packages = [...KIT, 'svelte@5.57.3', 'vite@8.3.8', 'hono@4.13.19', inject('tarball')];
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd });
  const page = readFileSync(join(ROOT, 'docs/frameworks.md'), 'utf8');
  const files = Array.from(page.matchAll(/^```[jt]s\n\/\/ (gateway\.ts|src\/\S+)\n([^]*?)^```$/gm));
  for (const [, name = '', code = ''] of [...files, ['', 'src/app.html', '%sveltekit.head%%sveltekit.body%']]) {
    const path = join(cwd, name === 'gateway.ts' ? 'src/gateway.ts' : name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
  }
  execFileSync(process.execPath, ['node_modules/vite/bin/vite.js', 'build'], { cwd, stdio: 'pipe' });
  const PORT = String(await freePort());
  const env = { HOST: '127.0.0.1', PORT, UPSTREAM_BASE_URL: upstream.url };
  const running = run(env, { cwd, command: [process.execPath, 'build'] });
  await running.until(() => /Listening on/.exec(running.stdout()) ?? undefined);
  const ask = (method: string) => {
    const path = '/gateway/api/v2/subscription/';
    return call(`http://127.0.0.1:${PORT}`, { path, method, token, headers: { 'content-type': 'application/json' } });
  };
  expect((await ask('GET')).json).toMatchObject({ plan: 3 });
  expect((await ask('DELETE')).json).toMatchObject({ type: '/gateway/problems/method_not_allowed' });
});
