import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { killAll, ROOT } from '../../support/process.ts';
import { json, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts';
import { freePort } from '../../support/ports.ts';
import { openCollector } from '../../support/collector.ts';
import { call } from '../../support/http.ts';
import { installed, startIn } from './installed.ts';

let folder: string;
let upstream: ScriptedUpstream;

const badges = (title: string) => ({ count: 1, next: null, previous: null, results: [{ title }] });

const token = 'key-of-a-user-of-the-package';

beforeAll(async () => {
  folder = installed();
  upstream = await startUpstream();
});

afterAll(async () => {
  await killAll();
  await upstream.close();
});

const node = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  return { status, stdout, stderr };
};

const cli = (...args: string[]) => node('node_modules/portico/dist/package/entry/cli/main.js', ...args);

describe.for(['node', 'workerd'] as const)('an app of a user on %s', (runtime) => {
  let url: string;

  beforeAll(async () => {
    url = await startIn[runtime](folder, { UPSTREAM_BASE_URL: upstream.url });
  });

  beforeEach(() => {
    upstream.on('GET /api/v2/badge/', json(200, badges('Early bird')));
  });

  it.for(['', '/under/here'])(
    'answers the endpoint that was added, and composes an overview of it: at “%s”',
    async (at) => {
      upstream.on('GET /api/v2/notification/', json(200, { count: 3, next: null, previous: null, results: [] }));
      const answer = await call(url, { path: `${at}/api/v2/badge/`, token });
      expect([answer.status, answer.json, answer.headers['x-host']]).toEqual([200, badges('Early bird'), 'the host']);
      const { json: composed } = await call(url, { path: `${at}/bff/v1/inbox-overview`, token });
      expect(composed).toMatchObject({ data: { computed: { unread: 3, latest_badge: { title: 'Early bird' } } } });
    },
  );

  it('has one Hono and one GatewayError, and reads in a handler of its own', async () => {
    upstream.on('GET /api/v2/subscription/', json(409, { code: 'two_plans' }));
    const said = ['/own/same-hono', '/own/caught', '/own/latest'].map((path) => call(url, { path, token }));
    const answers = (await Promise.all(said)).map((answer): unknown => answer.json);
    expect(answers).toEqual([true, { caught: 'two_plans' }, { title: 'Early bird' }]);
  });

  it('has the endpoint in its OpenAPI document, and the files of the documentation page', async () => {
    const document = await call(url, { path: '/openapi.json' });
    expect(document.json).toMatchObject({ paths: { '/api/v2/badge/': { get: { operationId: 'listBadges' } } } });
    for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css'])
      expect((await call(url, { path: `/docs/${name}` })).status).toBe(200);
  });
});

it('has the console on its admin listener, whole', async () => {
  const adminPort = String(await freePort());
  await startIn.node(folder, { UPSTREAM_BASE_URL: upstream.url, ADMIN_PORT: adminPort });
  const ask = (path: string) => call(`http://127.0.0.1:${adminPort}`, { path });
  const { text } = await ask('/console');
  const named = Array.from(text.matchAll(/(?:src|href)="(\/console[^"]*)"/g), ([, path = '']) => path);
  expect(named.length).toBe(2);
  for (const path of [...named, '/console/data']) expect([path, (await ask(path)).status]).toEqual([path, 200]);
});

it('traces go to the collector that a variable names', async () => {
  const collector = await openCollector();
  const env = {
    UPSTREAM_BASE_URL: upstream.url,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '10',
  };
  const url = await startIn.node(folder, env);
  upstream.on('GET /api/v2/badge/', json(200, badges('Early bird')));
  await call(url, { path: '/api/v2/badge/', token });
  const [server] = await collector.until(({ kind }) => kind === 'server');
  expect(server).toMatchObject({ name: 'GET /api/v2/badge/', facts: { 'http.response.status_code': 200 } });
  await collector.close();
});

it('its types let the app compile, and no row, group or section that is not there, nor a wrong field', () => {
  const { stdout } = node(join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.', '--skipLibCheck', 'false');
  const errors = Array.from(stdout.matchAll(/^(\S+)\(\d+,\d+\): error (TS\d+)/gm), ([, ...said]) => said.join(' '));
  expect(errors).toEqual(['wrong.ts TS2551', 'wrong.ts TS2322', 'wrong.ts TS2322', 'wrong.ts TS2339']);
});

describe('portico on the command line', () => {
  it.for([
    [['client', 'no-file.json'], 'portico: ENOENT: no such file'],
    [['client'], 'portico: portico client takes one file\n', 64],
    [
      ['client', 'package.json'],
      'portico: portico client needs openapi-typescript: npm install --save-dev openapi-typescript typescript@5\n',
    ],
    [['import', 'node.ts'], 'the document is no JSON, and portico import needs yaml for it: npm install yaml\n'],
    [['paint'], 'portico: there is no command paint; --help names all\n', 64],
  ] as const)('says in a sentence what is wrong with %s', ([args, words, expected = 1]) => {
    expect(cli(...args)).toEqual({ status: expected, stdout: '', stderr: expect.stringContaining(words) });
  });

  it('prints rows for the calls of a document', async () => {
    const url = await startIn.node(folder, { UPSTREAM_BASE_URL: upstream.url });
    writeFileSync(join(folder, 'openapi.json'), (await call(url, { path: '/openapi.json' })).text);
    const { stdout } = cli('import', 'openapi.json');
    expect(stdout).toContain('at: "GET /api/v2/badge/"');
    writeFileSync(join(folder, 'imported.ts'), `${stdout}\nconsole.log(Object.keys(rows).length > 0);\n`);
    expect(node('imported.ts').stdout).toBe('true\n');
    rmSync(join(folder, 'imported.ts'));
  });

  it('says its version', () => {
    expect(cli('--version').stdout).toBe('0.3.0\n');
  });

  it('says what a configuration lacks, where there is no sandbox', () => {
    const lacks = /UPSTREAM_BASE_URL: expected the URL of the upstream/;
    expect(cli('--check')).toEqual({ status: 78, stdout: '', stderr: expect.stringMatching(lacks) });
    expect(cli('doctor')).toEqual({ status: 1, stdout: expect.stringMatching(lacks), stderr: '' });
  });
});

it('portico, portico/proxy-account and portico/worker reach nothing of Node', async () => {
  const entries = ['portico', 'portico/proxy-account', 'portico/worker'].map((name) => `export * from '${name}';`);
  const { metafile } = await build({
    stdin: { contents: entries.join('\n'), resolveDir: folder },
    bundle: true,
    write: false,
    metafile: true,
    platform: 'neutral', // an import of a module of Node is an error
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser'], // those of wrangler: what agents are answered by has another file for Node
    external: ['cloudflare:*'],
  });
  const packages = Object.keys(metafile.inputs).map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
  for (const name of ['undici', 'pino', 'prom-client', 'ioredis', '@hono/node-server'])
    expect(packages).not.toContain(name);
  expect(packages).toContain('hono');
});
