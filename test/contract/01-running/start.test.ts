import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { says } from '../../support/contract.ts';
import { call } from '../../support/http.ts';
import { folderWith, killAll, type NodeProcess, ROOT, run, startNode, urlIn } from '../../support/process.ts';
import { LEAK_MARK, secret } from '../../support/secrets.ts';

interface Packages {
  readonly scripts: Readonly<Record<string, string>>;
  readonly packages: Readonly<Record<string, { readonly version: string }>>;
}

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const { packages } = JSON.parse(textOf('package-lock.json')) as Packages;
const { scripts } = JSON.parse(textOf('package.json')) as Packages;
const pinned = packages['node_modules/node']!.version;

/** The rest of a curl that was printed, as a request. */
const CURL = /curl -i -H 'Authorization: Token (\S+)' (http:\/\/[^/\s]+)(\/\S*)/;

let npm: NodeProcess;

beforeAll(async () => {
  npm = await startNode({}, { cwd: ROOT, command: ['npm', 'start'] });
  await npm.until(() => CURL.exec(npm.stdout()) ?? undefined);
});
afterAll(killAll);

const printed = () => {
  const [, token = '', url = '', path = ''] = CURL.exec(npm.stdout()) ?? [];
  return { url, asked: { path, token } };
};

test(
  says('with no `UPSTREAM_BASE_URL` it starts the sandbox too, and prints a first call with a working key'),
  async () => {
    const { url, asked } = printed();
    expect(url).toBe(urlIn(npm.records()));
    expect(await call(url, asked)).toMatchObject({
      status: 200,
      json: { data: { subscription: { id: 1005 } }, meta: { complete: true } },
    });
    expect((await call(url, asked)).headers['cache-status']).toMatch(/^portico; hit/);
    const sandbox = /sandbox upstream at (http:\/\/[\d.:]+)\./.exec(npm.stdout())?.[1] ?? '';
    expect((await call(sandbox, { path: '/_sandbox/calls' })).status).toBe(200);
  },
);

test(says('the scripts run on the Node that the lockfile pins'), async () => {
  const { text } = await call(npm.adminUrl, { path: '/metrics' });
  expect(/node="v([\d.]+)"/.exec(text)?.[1]).toBe(pinned);
});

test(`${says("Both work where the machine's own Node is 20, 22, 24 or 26")}, ${says('with nothing installed by hand')}`, () => {
  for (const name of ['start', 'test']) {
    const [program = ''] = scripts[name]!.replace(/^exec /, '').split(' ');
    expect(packages, name).toHaveProperty([`node_modules/${program}`]);
  }
});

test(
  says('In production: Node 24 (`Dockerfile`, or plain `node`), or Cloudflare Workers (`wrangler.toml`): the same app'),
  () => {
    expect(pinned).toMatch(/^24\./);
    expect(textOf('Dockerfile')).toContain(`ARG NODE_IMAGE=node:${pinned}-`);
    for (const entry of ['src/entry/node/start.ts', 'src/entry/worker.ts'])
      expect(textOf(entry)).toMatch(/portico\(\{/);
  },
);

test(says('admin listener: `/livez`, `/readyz`, `/metrics`, `/console`'), async () => {
  const { url } = printed();
  for (const path of ['/livez', '/readyz', '/metrics', '/console'])
    expect([path, (await call(npm.adminUrl, { path })).status]).toEqual([path, 200]);
  for (const path of ['/metrics', '/console']) expect((await call(url, { path })).status).toBe(404);
  const api = await call(npm.adminUrl, { ...printed().asked });
  expect(api).toMatchObject({ status: 404, json: { code: 'unknown_endpoint' } });
});

const LOCAL = ['http://localhost:5173', 'http://localhost', 'http://127.0.0.1:3000', 'http://[::1]:8080'];
const OTHERS = ['https://localhost:5173', 'http://localhost.evil.example', 'http://127.0.0.2', 'null'];

test('pages of this machine may use it while its upstream is the sandbox, and no others', async () => {
  const { url, asked } = printed();
  for (const origin of [...LOCAL, ...OTHERS]) {
    const { headers } = await call(url, { ...asked, headers: { origin } });
    const allowed = LOCAL.includes(origin) ? origin : undefined;
    expect([origin, headers['access-control-allow-origin']]).toEqual([origin, allowed]);
  }
});

test(`${says('environment variables and `.env` on Node')}: a variable of both is the environment's, an empty one is none`, async () => {
  const own = secret('of-a-file-and-not-of-the-environment');
  const lines = ['LOG_LEVEL=silent', 'SESSIONS=true', 'SECRETS_FILE=own', 'PUBLIC_URL=https://public.example'];
  const cwd = folderWith({ own: `${own}\n`, '.env': `\uFEFF${lines.join('\r\n')}\r\n` });
  const env = { ADMIN_PORT: '0', SANDBOX_PORT: '0', LOG_LEVEL: 'info', PUBLIC_URL: '', NODE_ENV: '' };
  const { url } = await startNode(env, { cwd });
  const page = await call(url, { path: '/api/v2/payment/transaction/?page_size=7', token: 'sandbox-paid-key' });
  expect(page.json).toMatchObject({ next: expect.stringMatching(/^https:\/\/public\.example\//) });
  expect((await call(url, { path: '/bff/v1/session' })).json).toEqual({ authenticated: false });
});

test(says('the process ends with 78 before it listens'), async () => {
  const bad = {
    PORT: '1x',
    ADMIN_PORT: LEAK_MARK,
    SECRETS: secret().slice(0, 20),
    CACHE_POLICY: `{"x":"${LEAK_MARK}"}`,
  };
  const process = run(bad);
  expect(await process.exited).toBe(78);
  expect(
    process
      .stderr()
      .match(/^\w+(?=: expected \S)/gm)
      ?.toSorted(),
  ).toEqual(Object.keys(bad).toSorted());
  expect(process.stdout() + process.stderr()).not.toMatch(new RegExp(`${LEAK_MARK}|listening`));
});

/** Whoever has it: this test, or somebody else on this machine. */
async function take(port: number): Promise<void> {
  const server = createServer().listen(port, '127.0.0.1');
  onTestFinished(() => void server.close());
  await Promise.race([once(server, 'listening'), new Promise((resolve) => server.once('error', resolve))]);
}

test.each([
  ['PORT', 8787, { ADMIN_PORT: '0' }],
  ['ADMIN_PORT', 8788, { PORT: '0' }],
])(
  `${says('`npm ci && npm start` runs the gateway on `http://127.0.0.1:8787`')}: a %s in use ends it, and nobody has been served`,
  async (name, port, env) => {
    await take(port);
    const process = run({ SANDBOX_PORT: '0', ...env });
    const met = await process.until(() => urlIn(process.records()) ?? (process.stderr() || undefined));
    if (met.startsWith('http'))
      // somebody else had it, and has just left
      return expect((await call(`http://127.0.0.1:${port}`, { path: '/livez' })).status).toBe(200);
    expect(met).toBe(`${name}: cannot listen on 127.0.0.1:${port}: it is already in use\n`);
    expect([await process.exited, urlIn(process.records())]).toEqual([1, undefined]);
  },
);
