import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { expectedSecret } from '../../../src/config.ts';
import { readAll } from '../../operators/config/rows.ts';
import { says } from '../../support/contract.ts';
import { configOf, openGateway } from '../../support/gateway.ts';
import { folderWith, ROOT } from '../../support/process.ts';
import { complaintsOf, program } from '../../support/program.ts';
import { LEAK_MARK } from '../../support/secrets.ts';

const SECRETS = 'of this test and no other: a quick brown fox';
const PUBLIC = 'for-this-machine-only-0123456789abcdef';
const IN_PRODUCTION = { NODE_ENV: 'production', UPSTREAM_BASE_URL: 'https://upstream.example' };

/** As the contract has them. */
const DEFAULTS = [
  [says('`HOST`, `PORT` | `127.0.0.1`, `8787`'), { host: '127.0.0.1', port: 8787 }],
  [says('`ADMIN_HOST`, `ADMIN_PORT` | `127.0.0.1`, `8788`'), { adminHost: '127.0.0.1', adminPort: 8788 }],
  [says('`UPSTREAM_BASE_URL` | unset'), { upstreamBaseUrl: undefined, sandboxPort: undefined }],
  [
    says('`UPSTREAM_TIMEOUT_MS`, `REQUEST_TIMEOUT_MS` | `5000`, `10000`'),
    { upstreamTimeoutMs: 5000, requestTimeoutMs: 10_000 },
  ],
  [says('`UPSTREAM_MAX_CONNECTIONS` | `256`'), { upstreamMaxConnections: 256 }],
  [
    says('`UPSTREAM_MAX_BODY_BYTES`, `MAX_BODY_BYTES` | `5242880`, `65536`'),
    { upstreamMaxBodyBytes: 5_242_880, maxBodyBytes: 65_536 },
  ],
  [
    says('`UPSTREAM_CA_FILE`, `UPSTREAM_CERT_FILE`, `UPSTREAM_KEY_FILE` | unset'),
    { upstreamCaFile: undefined, upstreamCertFile: undefined, upstreamKeyFile: undefined, storeCaFile: undefined },
  ],
  [says('`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY` | unset'), { httpsProxy: undefined, httpProxy: undefined }],
  [says('`PUBLIC_URL` | unset'), { publicUrl: undefined }],
  [says('`CACHE_MAX_BYTES` | `134217728`'), { cacheMaxBytes: 134_217_728 }],
  [says('`WORKERS` | `1`'), { workers: 1 }],
  [says('`STORE_URL` | unset'), { storeUrl: undefined }],
  [says('`SECRETS` | unset'), { secrets: [] }],
  [says('`SESSIONS` | `false`'), { sessions: false }],
  [says('`MCP` | `false`'), { mcp: false }],
  [says('`ALLOWED_ORIGINS` | unset'), { allowedOrigins: [] }],
  [says('`RATE_LIMIT_PER_MINUTE` | `600`'), { rateLimitPerMinute: 600 }],
  [says('`TRUSTED_PROXIES` | unset'), { trustedProxies: [] }],
  [
    says('`LOG_LEVEL`, `LOG_REQUESTS`, `SLOW_MS` | `info`, `all`, `1000`'),
    { logLevel: 'info', logRequests: { from: 0, share: 0 }, slowMs: 1000 },
  ],
  [says('`SHUTDOWN_DELAY_MS`, `SHUTDOWN_GRACE_MS` | `0`, `10000`'), { shutdownDelayMs: 0, shutdownGraceMs: 10_000 }],
] as const;

test.each(DEFAULTS)('%s', (_, values) => expect(readAll({})).toMatchObject(values));

describe(says('each is named with what was expected, never with the value of a secret'), () => {
  test('all that is bad, and nothing that is good; what nobody has documented is passed over', async () => {
    const bad = Object.fromEntries(
      ['PORT', 'LOG_LEVEL', 'SECRETS', 'STORE_URL', 'WORKERS'].map((name) => [name, LEAK_MARK]),
    );
    const files = { UPSTREAM_CA_FILE: '/nothing', STORE_KEY_FILE: '/nothing' };
    const env = { ...bad, ...files, HOST: 'fine', ASSETS: { fetch: () => null }, PATH: '/bin' };
    const { status, stdout, stderr } = await program(env, '--check');
    expect([status, stdout]).toEqual([78, '']);
    const named = stderr.match(/^\w+(?=: expected \S)/gm);
    expect(named?.toSorted()).toEqual([...Object.keys(bad), ...Object.keys(files)].toSorted());
    expect(stderr).not.toContain(LEAK_MARK);
  });

  test('a `.env` that is a folder, or not UTF-8', async () => {
    const folder = folderWith();
    mkdirSync(join(folder, '.env'));
    const wide = folderWith({ '.env': Buffer.from('\uFEFFPORT=1', 'utf16le') });
    const here = process.cwd();
    for (const [cwd, expected] of [
      [folder, 'a file, not a folder'],
      [wide, 'a file in UTF-8'],
    ] as const) {
      process.chdir(cwd);
      const { status, stderr } = await program(process.env, '--check').finally(() => process.chdir(here));
      expect([status, stderr]).toEqual([78, `.env: expected ${expected}\n`]);
    }
  });
});

const NO_SECRET = 'SECRETS: expected a secret of 32 characters or more, since';
const UPSTREAM = 'UPSTREAM_BASE_URL: expected a URL, since NODE_ENV is production';

test.each([
  [
    says('unset: sandbox, but with `NODE_ENV=production` and from the package: the start fails'),
    { NODE_ENV: 'production' },
    UPSTREAM,
  ],
  [
    says("existing and the operator's; needs `SECRETS`"),
    { STORE_URL: 'redis://store' },
    `${NO_SECRET} STORE_URL is set`,
  ],
  [says('cookie sessions; needs `SECRETS`'), { SESSIONS: 'true' }, `${NO_SECRET} SESSIONS is true`],
  [
    says('exact origins for CORS and cookies, or `*` without `SESSIONS`'),
    { SESSIONS: 'true', SECRETS, ALLOWED_ORIGINS: ' *' },
    'ALLOWED_ORIGINS: expected origins and no *, since SESSIONS is true',
  ],
])('%s', async (_, env, line) => {
  expect(await complaintsOf(env)).toEqual([line]);
  expect(await complaintsOf({ ...env, ...IN_PRODUCTION, SECRETS, ALLOWED_ORIGINS: 'https://app.example' })).toEqual([]);
});

test(`${says('`auto` for one a core')}; ${says('`redis-sentinel://user:password@host:port,…/master/db`')}`, () => {
  expect(readAll({ WORKERS: 'auto' }).workers).toBe(availableParallelism());
  const STORE_URL = 'redis-sentinel://user:p%40ss@one:26380,two/primary/2';
  expect(readAll({ STORE_URL, SECRETS }).storeUrl).toMatchObject({
    nodes: [{ host: 'one', port: 26_380 }, { host: 'two' }],
    password: 'p@ss',
  });
});

test(says('`SECRETS_FILE` and `STORE_URL_FILE` read a secret from a file.'), async () => {
  const folder = folderWith({ own: `${SECRETS}\n`, url: 'redis://:p%40ss@store/1\n' });
  const [own, url] = ['own', 'url'].map((name) => join(folder, name));
  expect(readAll({ SECRETS_FILE: own, STORE_URL_FILE: url })).toMatchObject({
    secrets: [SECRETS],
    storeUrl: { nodes: [{ host: 'store' }] },
  });
  expect(await complaintsOf({ SECRETS_FILE: own, SECRETS })).toEqual([
    'SECRETS_FILE: expected nothing, since SECRETS is set too',
  ]);
  const missing = { ...IN_PRODUCTION, SESSIONS: 'true', STORE_URL: 'redis://127.0.0.1:9', SECRETS_FILE: '.' };
  expect(await complaintsOf(missing)).toEqual(['SECRETS_FILE: expected a file, not a folder']);
});

/** What is given to a variable or constant of that name: quoted, or up to the next blank; in YAML as a default too. */
const GIVEN = /SECRETS?['"]?\s*(?:=|:)\s*(?:\$\{SECRETS:-)?(?:'([^'\n]+)'|"([^"\n]+)"|`([^`\n]+)`|([\w+/=,.!-]+))/g;

const secretsIn = (text: string) =>
  [...text.matchAll(GIVEN)]
    .flatMap(([, ...forms]) => forms.find((form) => form !== undefined)?.split(',') ?? [])
    .map((one) => one.trim())
    .filter((one) => one.length >= 32 && !one.includes('${'));

describe(says('With `NODE_ENV=production` a secret that is published in this repository ends the start (78)'), () => {
  test('wherever it stands among others; elsewhere it may be one', async () => {
    const expected = 'to be a secret of your own, since NODE_ENV is production: this one is public';
    const { status, stderr } = await program({ ...IN_PRODUCTION, SECRETS: `${SECRETS}, ${PUBLIC}` }, '--check');
    expect([status, stderr]).toEqual([78, `SECRETS: expected entry 2 ${expected}\n`]);
    expect(await complaintsOf({ ...IN_PRODUCTION, SECRETS: `${PUBLIC}!` })).toEqual([]);
    expect(await complaintsOf({ SECRETS: PUBLIC })).toEqual([]);
  });

  test('that is each one in the files that are published', () => {
    const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0');
    const texts = files.filter(
      (file) => /\.(?!png)\w+$/.test(file) && !/^test\/(contract\/01-|operators\/config)/.test(file),
    );
    const found = texts.flatMap((file) => secretsIn(readFileSync(join(ROOT, file), 'utf8')));
    expect(new Set(found).size).toBeGreaterThan(1);
    expect(found.filter((one) => expectedSecret(one, true) === undefined)).toEqual([]);
  });
});

test(says('`portico --check` says whether a configuration would start'), async () => {
  const good = await program(
    { UPSTREAM_BASE_URL: 'http://127.0.0.1:1', STORE_URL: 'redis://127.0.0.1:1', SECRETS },
    '--check',
  );
  expect(good).toEqual({ status: 0, stdout: 'this configuration would start\n', stderr: '' });
  const sandbox = await program({}, '--check');
  expect(sandbox.stdout).toBe('this configuration would start, with the sandbox as its upstream\n');
  expect(await program({ PORT: 'x' }, '--check')).toMatchObject({ status: 78, stdout: '' });
});

test('the words after its name are its version, help that names all, or not understood: one line, and 64', async () => {
  expect(await program({}, '--version')).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' });
  const { stdout } = await program({}, '--help');
  for (const word of ['doctor', '--check', '--version', '--help']) expect(stdout).toContain(word);
  for (const words of ['docter', '--chek', 'doctor more', '--check=yes']) {
    const said = await program({}, ...words.split(' '));
    expect(said).toMatchObject({ status: 64, stdout: '' });
    expect(said.stderr).toMatch(/^portico: [^\n]+; --help names all\n$/);
  }
});

test(`${says('Configuration is read once at start')}; ${says('bindings on Workers')} may be numbers, booleans and objects`, async () => {
  const vars = { UPSTREAM_TIMEOUT_MS: 250, SESSIONS: false, CACHE_POLICY: { getSubscription: false } };
  expect(configOf(vars as unknown as Readonly<Record<string, string>>)).toMatchObject({
    upstreamTimeoutMs: 250,
    sessions: false,
  });
  expect(await complaintsOf({ UPSTREAM_TIMEOUT_MS: 0.5, SLOW_MS: { ms: 5 } })).toHaveLength(2);
  const env: Record<string, string> = { RATE_LIMIT_PER_MINUTE: '1' };
  const { ask } = openGateway(env);
  env['RATE_LIMIT_PER_MINUTE'] = '0';
  expect([(await ask('getSubscription')).status, (await ask('getSubscription')).status]).toEqual([200, 429]);
});
