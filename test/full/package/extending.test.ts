import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { json, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts';
import { killAll, ROOT } from '../../support/process.ts';
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
  cpSync(join(ROOT, 'examples/extend'), join(folder, 'extend'), { recursive: true });
  const config = JSON.parse(textIn('json')) as object;
  writeFileSync(
    join(folder, 'tsconfig.page.json'),
    JSON.stringify({ ...config, include: ['page-*/*.ts', 'extend/*.ts'] }),
  );
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
      'Hooks',
      'On Workers',
      'A test of your own',
    ]);
    for (const title of TITLES) expect(fileOf(title)).not.toBe('');
  });

  test('the configuration of the worker is that of the example', () => {
    const example = readFileSync(join(ROOT, 'examples/extend/wrangler.toml'), 'utf8');
    expect(textIn('toml')).toBe(`# wrangler.toml\n${example.trim()}`);
  });

  test.each(TITLES.filter((title) => fileOf(title) === 'app.ts'))(
    'the app of “%s” can be asked for its document',
    (title) => {
      const cli = 'node_modules/portico/dist/package/entry/cli/main.js';
      const { stdout } = node(cli, 'openapi', join(folderOf(title), 'app.ts'));
      expect(JSON.parse(stdout)).toMatchObject({ openapi: '3.1.0' });
    },
  );

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

  test('an upstream of one’s own has its calls and its overview', async () => {
    const ask = await ofPage('An upstream of your own');
    expect((await ask('/v1/books')).status).toBe(200);
    expect((await ask('/bff/v1/shelf-overview')).json).toMatchObject({ data: { books: { count: 0 } } });
    expect(upstream.callsTo('GET /v1/books')[0]?.headers['authorization']).toBe(`Bearer ${token}`);
  });

  test('hooks have their say', async () => {
    const ask = await ofPage('Hooks');
    const answer = await ask('/api/v2/subscription/'); // nobody exchanges keys at that address
    expect(answer).toMatchObject({
      status: 500,
      json: { code: 'internal_error', help: 'https://help.example/internal_error?of=getSubscription' },
    });
  });

  test('a test of one’s own passes', () => {
    const { status, stdout } = node('--test', join(folderOf('A test of your own'), 'app.test.ts'));
    expect([status, stdout]).toEqual([0, expect.stringMatching(/pass 1/)]);
  });
});

test('the example does each of it', async () => {
  const ask = await started('extend/node.ts');
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
