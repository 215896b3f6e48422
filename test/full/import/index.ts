import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { Validator } from '@seriousme/openapi-schema-validator';
import { installIn } from '../../../scripts/install.ts';
import { fromEnv } from '../../../src/entry/node/index.ts';
import { portico, type PorticoOptions } from '../../../src/index.ts';
import { json, startUpstream } from '../../support/scripted-upstream.ts';

// `portico import` of OpenAPI documents that others have written: what it prints compiles, starts, has a valid document, and
// an overview written by hand over it composes what a scripted upstream answers.

interface Case {
  /** Below node_modules. */
  readonly document: string;
  /** Before the paths, as in the URL of the document's server. */
  readonly base: string;
  /** What the upstream answers, by path and query. */
  readonly answers: Readonly<Record<string, unknown>>;
  readonly overview: string;
  readonly computed: object;
  /** Fewest rows, so that nobody loses some. */
  readonly rows: number;
}

const ID = '01981f0e-7d2c-7000-8000-5f3b9c0d1e2f';
const STAKE = 'stake1ux3g2c9dx2nhhehyrezyxpkstartcqmu9hk63qgfkccw5rqttygt7';

const CASES: Readonly<Record<string, Case>> = {
  /** Train Travel API of Bump.sh: OpenAPI 3.1, YAML, small. */
  trains: {
    document: '@readme/oas-examples/3.1/yaml/train-travel.yaml',
    base: '',
    answers: {
      [`/bookings/${ID}`]: { id: ID, passenger_name: 'Ann', has_dog: false },
      '/stations': {
        data: [{ id: ID, name: 'Paris', address: 'Rue', country_code: 'FR' }],
        links: { next: '?page=2' },
      },
    },
    overview: `/bff/v1/bookings/${ID}/overview`,
    computed: { who: 'Ann', stations: ['Paris'] },
    rows: 7,
  },
  /** Blockfrost: OpenAPI 3.0, YAML, 0.5 MB. */
  chain: {
    document: '@blockfrost/openapi/openapi.yaml',
    base: '/api/v0',
    answers: {
      [`/api/v0/accounts/${STAKE}`]: { stake_address: STAKE, active: true, controlled_amount: '619154618165' },
      [`/api/v0/accounts/${STAKE}/rewards?count=2`]: [{ epoch: 215, amount: '12695385', type: 'member' }],
      '/api/v0/blocks/latest': { height: 15_243_593, time: 1_641_338_934 },
    },
    overview: `/bff/v1/stakes/${STAKE}/overview`,
    computed: { isActive: true, height: 15_243_593, rewards: ['12695385'] },
    rows: 120,
  },
  /** GitHub, with the extensions of Octokit: OpenAPI 3.0, JSON, 13 MB. */
  hub: {
    document: '@octokit/openapi/generated/api.github.com.json',
    base: '',
    answers: {
      '/repos/honojs/hono': { id: 1, name: 'hono', full_name: 'honojs/hono', stargazers_count: 30_000 },
      '/repos/honojs/hono/issues?state=open&per_page=2': [{ id: 2, title: 'A question' }],
      '/repos/honojs/hono/contributors': [{ login: 'yusukebe', contributions: 900, type: 'User' }],
    },
    overview: '/bff/v1/repos/honojs/hono/overview',
    computed: { stars: 30_000, titles: ['A question'], logins: ['yusukebe'] },
    rows: 1200,
  },
};

const FOLDER = new URL('./', import.meta.url).pathname;
const ROOT = new URL('../../../', import.meta.url);
installIn(FOLDER);
rmSync(`${FOLDER}generated`, { recursive: true, force: true });
mkdirSync(`${FOLDER}generated`);

const seconds = (from: number) => `${((performance.now() - from) / 1000).toFixed(1)} s`;

const run = (script: string, ...args: string[]) =>
  execFileSync(process.execPath, [script, ...args], { cwd: ROOT, maxBuffer: 100_000_000, encoding: 'utf8' });

for (const [name, { document }] of Object.entries(CASES)) {
  const started = performance.now();
  const code = run('src/entry/cli/main.ts', 'import', `${FOLDER}node_modules/${document}`);
  writeFileSync(`${FOLDER}generated/${name}.ts`, code);
  const skipped = code.split(' is not here: ').length - 1;
  const comments = code.split('\n').filter((line) => /^\s*\/\/|, \/\/ look|, \/\/ required/.test(line)).length;
  const lines = code.split('\n').length - 1;
  console.log(
    `${document}: ${lines} lines, ${comments} comments, ${skipped} operations are no rows; ${seconds(started)}`,
  );
}

const started = performance.now();
try {
  run('node_modules/typescript/bin/tsc', '--project', FOLDER);
} catch (error) {
  throw new Error((error as { stdout: string }).stdout, { cause: error });
}
console.log(`All of it compiles; ${seconds(started)}`);

registerHooks({
  resolve: (name, context, next) =>
    name === 'portico' ? { url: new URL('src/index.ts', ROOT).href, shortCircuit: true } : next(name, context),
});

for (const [name, { base, answers, overview, computed, rows: fewest }] of Object.entries(CASES)) {
  const from = performance.now();
  const upstream = await startUpstream();
  for (const [target, body] of Object.entries(answers)) upstream.on(`GET ${target}`, json(200, body));
  const tables = (await import(`./apps/${name}.ts`)) as Pick<PorticoOptions, 'rows' | 'overviews'>;
  const variables = { UPSTREAM_BASE_URL: upstream.url + base, LOG_LEVEL: 'silent' };
  const gateway = portico({ ...fromEnv(variables), ...tables, headers: ({ credential }) => ({ 'X-Key': credential }) });
  const all = Object.values(tables.rows);
  assert.ok(!all.some(({ cache }) => cache), 'nothing is cached until a line says so');
  const many = all.length;
  assert.ok(many >= fewest, `${name} has ${many} rows`);
  console.log(`${name}: ${many} rows, started after ${seconds(from)}`);

  const composed = await gateway.app.request(overview, { headers: { Authorization: 'Bearer a-key' } });
  const { data, errors } = (await composed.json()) as { data: { computed: object }; errors: readonly object[] };
  assert.deepEqual([composed.status, errors, data.computed], [200, [], computed], name);
  assert.equal(upstream.calls.length, Object.keys(answers).length);
  upstream.assertNoUnexpected();

  const text = await (await gateway.app.request('/openapi.json')).text();
  const { valid, errors: flaws } = await new Validator().validate(JSON.parse(text) as Record<string, unknown>);
  assert.ok(valid, JSON.stringify(flaws));
  console.log(`${name}: its overview is composed, and its document of ${(text.length / 1e6).toFixed(1)} MB is valid`);
  await gateway.drain();
  await upstream.close();
}
