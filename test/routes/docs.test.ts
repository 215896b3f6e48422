import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openApiText } from '../../src/routes/document.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { accountTables } from '../support/account-api.ts';

const NOWHERE = 'http://127.0.0.1:9';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway(NOWHERE);
});

afterAll(() => gateway.close());

const get = (path: string, init?: RequestInit) => fetch(`${gateway.url}${path}`, init);

const policyOf = (answer: Response) => {
  const directives = (answer.headers.get('content-security-policy') ?? '').split('; ');
  return Object.fromEntries(directives.map((text) => text.split(/ (.*)/).slice(0, 2))) as Record<string, string>;
};

test('the document is answered to anybody, as JSON, and the same twice', async () => {
  const answer = await get('/openapi.json');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('cache-control')).toBe('no-cache');
  const text = await answer.text();
  expect(text).toBe(await openApiText(accountTables));
  expect(await (await get('/openapi.json')).text()).toBe(text);
});

describe.each(['/docs', '/docs/'])('%s', (path) => {
  test('is a page that runs nothing but scripts of its own and asks no other host', async () => {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(policyOf(answer)).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': 'data:',
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    });
    const page = await answer.text();
    expect(page).toContain('<title>Portico API</title>');
    expect(page).not.toMatch(/https?:|<script>|\son\w+=|style=/);
    expect(page).toMatch(/<noscript>[^]*href="\/openapi\.json"[^]*<\/noscript>/);
  });

  test('is whole: all that it refers to is there, wherever the page was asked for', async () => {
    const page = await (await get(path)).text();
    const named = Array.from(page.matchAll(/(?:src|href)="(\/[^"]*)"/g), ([, target]) => target ?? '');
    const types = await Promise.all(
      named.map(async (target) => {
        const answer = await fetch(new URL(target, `${gateway.url}${path}`));
        await answer.arrayBuffer();
        return [target, answer.status, answer.headers.get('content-type')];
      }),
    );
    expect(types).toEqual([
      ['/docs/swagger-ui.css', 200, 'text/css; charset=utf-8'],
      ['/docs/swagger-ui-bundle.js', 200, 'text/javascript; charset=utf-8'],
      ['/docs/start.js', 200, 'text/javascript; charset=utf-8'],
      ['/openapi.json', 200, 'application/json'],
    ]);
  });
});

test('the start script shows the document of this host, and tells no validator elsewhere of it', async () => {
  const script = await (await get('/docs/start.js')).text();
  expect(script).toContain("url: '/openapi.json'");
  expect(script).toContain('validatorUrl: null');
  expect(script).not.toMatch(/https?:/);
});

test.each(['swagger-ui-bundle.js', 'swagger-ui.css'])('%s is the one of the package', async (name) => {
  const file = fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`));
  const bytes = Buffer.from(await (await get(`/docs/${name}`)).arrayBuffer());
  expect(bytes.equals(await readFile(file))).toBe(true);
});

test('HEAD works, other methods do not', async () => {
  const head = await get('/docs', { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  const post = await get('/openapi.json', { method: 'POST' });
  expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('where the files are missing, that is a problem, and the document is still there', async () => {
  const bare = await startGateway(NOWHERE, { docsAssets: { read: () => Promise.resolve(null) } });
  const answer = await fetch(`${bare.url}/docs/swagger-ui.css`);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(await answer.json()).toMatchObject({ status: 404, code: 'not_found', instance: '/docs/swagger-ui.css' });
  expect((await fetch(`${bare.url}/openapi.json`)).status).toBe(200);
  await bare.close();
});

test('beside a sandbox the page names its accounts, and sends calls with the key of the first', async () => {
  const trialAccounts = [
    { key: 'first-key', description: 'the first account' },
    { key: 'second-key', description: 'the second account' },
  ];
  const playing = await startGateway(NOWHERE, { trialAccounts });
  const page = await (await fetch(`${playing.url}/docs`)).text();
  for (const { key, description } of trialAccounts) {
    expect(page).toContain(key);
    expect(page).toContain(description);
  }
  const script = await (await fetch(`${playing.url}/docs/start.js`)).text();
  expect(script).toContain('tryItOutEnabled: true');
  expect(script).toContain("preauthorizeApiKey('Token', 'Token first-key')");
  await playing.close();
});

test('beside a real upstream it knows no account and no key', async () => {
  expect(await (await get('/docs')).text()).not.toContain('sandbox');
  const script = await (await get('/docs/start.js')).text();
  expect(script).not.toContain('preauthorize');
  expect(script).toContain('tryItOutEnabled: false');
});
