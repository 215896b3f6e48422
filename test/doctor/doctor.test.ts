import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningSandbox, startSandbox } from '../../sandbox/src/node.ts';
import { doctor } from '../../src/entry/node/doctor.ts';
import { emptyFolder } from '../runtime/node-gateway.ts';
import { listenLocally } from '../support/ports.ts';
import { hasRedis, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { bytes, json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { startSentinel } from '../support/sentinel.ts';
import { selfSigned } from '../support/self-signed.ts';

type Env = Readonly<Record<string, string>>;

const SECRETS = `${secret('sealing')}-of-more-characters`;
const PASSWORD = secret('password');
const PAID_KEY = 'sandbox-paid-key';
/** Nobody listens there. */
const NOBODY = '127.0.0.1:1';

/** What a test has started, to be closed after all. */
const closing: (() => unknown)[] = [];

let sandbox: RunningSandbox;

beforeAll(async () => {
  sandbox = await startSandbox();
  closing.push(() => sandbox.close());
});

afterEach(() => void vi.unstubAllEnvs());
afterAll(() => Promise.all(closing.map((close) => close())));

/** What it says of a gateway with these variables, by its lines. None of them holds a secret. */
async function examined(env: Env) {
  vi.stubEnv('BASE_URL', undefined); // vitest's own
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  let said = '';
  const status = await doctor(true, (text) => void (said += stripVTControlCharacters(text)));
  expect(leaksIn(said)).toEqual([]);
  return { status, lines: said.trimEnd().split('\n') };
}

/** Fails where something is bad, and only there. */
async function expectNamed(line: RegExp, env: Env): Promise<void> {
  const { status, lines } = await examined(env);
  expect(lines).toContainEqual(expect.stringMatching(line));
  expect(status).toBe(lines.some((one) => one.startsWith('bad')) ? 1 : 0);
}

async function answering(answer: Parameters<ScriptedUpstream['on']>[1]): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  closing.push(() => upstream.close());
  upstream.on(() => true, answer);
  return upstream;
}

const at = async (answer: Parameters<ScriptedUpstream['on']>[1]): Promise<Env> => ({
  UPSTREAM_BASE_URL: (await answering(answer)).url,
});

/** An upstream with a certificate that nobody has signed. */
async function untrusted(env: Env = {}): Promise<Env> {
  const server = createTlsServer(selfSigned, (socket) => socket.on('error', () => {}).end('no HTTP\r\n\r\n'));
  closing.push(() => server.close());
  return { UPSTREAM_BASE_URL: `https://127.0.0.1:${await listenLocally(server)}`, ...env };
}

function trusting(): Env {
  const UPSTREAM_CA_FILE = join(emptyFolder(), 'authority.pem');
  writeFileSync(UPSTREAM_CA_FILE, selfSigned.cert);
  return { UPSTREAM_CA_FILE };
}

const upstreamIs = (UPSTREAM_BASE_URL: string, others: Env = {}) => ({ UPSTREAM_BASE_URL, ...others });

const BROKEN: readonly (readonly [string, RegExp, () => Env | Promise<Env>])[] = [
  ['a bad variable', /^bad   configuration  PORT: expected /, () => ({ PORT: 'x' })],
  [
    'a port where nobody listens',
    /^bad   upstream       gives no answer \(refused, ECONNREFUSED\)/,
    () => upstreamIs(`http://${NOBODY}`),
  ],
  ['a name without address', /^bad   upstream .*\(dns, /, () => upstreamIs('https://nowhere.invalid')],
  ['a certificate that is not trusted', /^bad   upstream .*\(tls, .*UPSTREAM_CA_FILE/, untrusted],
  ['what is no HTTP behind one that is', /^bad   upstream .*\(bad_body\)/, () => untrusted(trusting())],
  [
    'a proxy that is not there',
    /^bad   upstream .*ECONNREFUSED.*look at HTTPS_PROXY and HTTP_PROXY$/,
    () => upstreamIs(sandbox.url, { HTTP_PROXY: `http://${NOBODY}` }),
  ],
  ['a wrong path', /^bad   upstream       answers 404 /, () => upstreamIs(`${sandbox.url}/v7`)],
  ['a redirect', /^bad   upstream       answers 301 /, () => at(json(301, {}, { location: 'https://a.example' }))],
  ['a page', /^bad   upstream       answers 401 /, () => at(json(401, '<html>'))],
  ['an upstream that fails', /^bad   upstream       fails with 500/, () => at(json(500, {}))],
  ['nothing that is HTTP', /^bad   upstream       gives no answer/, () => at(bytes('SSH-2.0-x\r\n'))],
  [
    'a key that is not known',
    /^bad   key            the upstream does not know PORTICO_KEY/,
    () => upstreamIs(sandbox.url, { PORTICO_KEY: secret() }),
  ],
  [
    'what is no key',
    /^bad   key            PORTICO_KEY is not 1 to 4096/,
    () => upstreamIs(sandbox.url, { PORTICO_KEY: `${secret()} a` }),
  ],
];

describe('the doctor names', () => {
  it.each(BROKEN)('%s', async (_, line, env) => expectNamed(line, await env()));
});

it('a key goes only to an upstream that asks for one', async () => {
  const upstream = await answering(json(429, {}));
  await examined({ UPSTREAM_BASE_URL: upstream.url, PORTICO_KEY: secret() });
  expect(upstream.calls.map(({ headers }) => headers['authorization'])).toEqual([undefined]);
});

describe(`of a store the doctor names${SKIPPED}`, () => {
  const stores: TestRedis[] = [];
  const urls: Record<string, string> = {};

  beforeAll(async () => {
    if (!hasRedis) return;
    const durable = { appendonly: 'yes' };
    const evicting = { ...durable, maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' };
    const started = await Promise.all([startRedis(durable), startRedis(), startRedis(evicting)]);
    stores.push(...started);
    for (const one of started) closing.push(() => one.close());
    const sentinel = await startSentinel();
    closing.push(() => sentinel.close());
    await sentinel.client.call('SENTINEL', 'SET', 'portico', 'down-after-milliseconds', '4999');
    const [good, forgetful, evicts] = started;
    const rights = ['on', `>${PASSWORD}`, '~p3:*', '~portico:{0}:id', '+@all'];
    await good.client.call('ACL', 'SETUSER', 'keeper', ...rights, '-hset', '-object');
    await good.client.call('ACL', 'SETUSER', 'blind', ...rights, '-info');
    const by = (login: string) => good.url.replace('redis://', `redis://${login}@`);
    Object.assign(urls, { away: `redis://${NOBODY}`, forgetful: forgetful.url, evicts: evicts.url, good: good.url });
    Object.assign(urls, { keeper: by(`keeper:${PASSWORD}`), blind: by(`blind:${PASSWORD}`) });
    Object.assign(urls, { stranger: by(`keeper:${secret('password')}`), sentinel: sentinel.url });
    Object.assign(urls, { lost: `${sentinel.url}-other` });
  });

  const BROKEN_STORES = [
    ['away', /^bad   store          127\.0\.0\.1:1 cannot be used \(ECONNREFUSED\)\. Is it running\?/],
    ['forgetful', /^bad   store          keeps nothing on disk.*appendonly yes$/],
    ['evicts', /^bad   store          evicts.*noeviction$/],
    ['stranger', /^bad   store .*\(WRONGPASS\)/],
    ['keeper', /^bad   store          its user may not HSET, OBJECT\. /],
    ['lost', /^bad   store .*\(NO_SENTINEL\)\. Look at the sentinels in STORE_URL/],
    ['blind', /^bad   store          its user may not INFO\. /],
    ['sentinel', /^bad   store          cut off from its replicas it takes purchases\. Set min-replicas-to-write/],
    [
      'sentinel',
      /^bad   store          cut off from its replicas it takes purchases for too long\. Set min-replicas-max-lag/,
    ],
    ['sentinel', /^bad   store          its sentinels replace a primary .* Set down-after-milliseconds 5000 or more$/],
  ] as const;

  it.skipIf(!hasRedis).each(BROKEN_STORES)('%s', async (name, line) => {
    await expectNamed(line, { STORE_URL: urls[name] ?? '', SECRETS });
  });

  it.skipIf(!hasRedis)('nothing where all is good, and leaves nothing behind', async () => {
    const env = { UPSTREAM_BASE_URL: sandbox.url, PORTICO_KEY: PAID_KEY, STORE_URL: urls['good'] ?? '', SECRETS };
    const { status, lines } = await examined(env);
    expect(status).toBe(0);
    expect(lines.map((line) => line.replaceAll(/\d[\d.]*/g, '#'))).toEqual([
      'good  configuration  a gateway would start with it',
      'good  upstream       asks for a key, as the API does (#)',
      'good  upstream       answers in # ms',
      'good  key            the upstream takes PORTICO_KEY',
      'good  store          answers in # ms',
      'good  store          is Redis #',
      'good  store          persists, and evicts nothing',
      'good  store          its user may do what is needed',
    ]);
    expect(lines.join()).not.toContain(PAID_KEY);
    expect(await stores[0]?.client.keys('*')).toEqual([]);
  });
});
