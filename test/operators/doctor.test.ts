import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningSandbox, startSandbox } from '../../sandbox/src/node.ts';
import { firstAuthority as first } from '../support/authorities.ts';
import { says } from '../support/contract.ts';
import { listenLocally } from '../support/ports.ts';
import { folderWith } from '../support/process.ts';
import { program } from '../support/program.ts';
import { hasRedis, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { bytes, json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { selfSigned } from '../support/self-signed.ts';
import { startSentinel } from '../support/sentinel.ts';

type Env = Readonly<Record<string, string>>;

const SECRETS = `${secret('sealing')}-of-more-characters`;
const PASSWORD = secret('password');
const PAID_KEY = 'sandbox-paid-key';
/** No resolver has to be asked about a name that long. */
const NO_NAME = `${'a'.repeat(64)}.invalid`;
/** Nobody listens there. */
const NOBODY = '127.0.0.1:1';

/** What a test has started, to be closed after all. */
const closing: (() => unknown)[] = [];

let sandbox: RunningSandbox;

beforeAll(async () => {
  sandbox = await startSandbox();
  closing.push(() => sandbox.close());
});

afterAll(() => Promise.all(closing.map((close) => close())));

/** What it says of a gateway with these variables, by its lines. None of them holds a secret. */
async function examined(env: Env) {
  const { status, stdout } = await program(env, 'doctor');
  expect(leaksIn(stdout)).toEqual([]);
  return { status, lines: stdout.trimEnd().split('\n') };
}

/** Fails where something is bad, and only there. */
async function expectNamed(line: RegExp, env: Env): Promise<void> {
  const { status, lines } = await examined(env);
  expect(lines).toContainEqual(expect.stringMatching(line));
  expect(status).toBe(lines.some((one) => one.startsWith('bad')) ? 1 : 0);
}

type Answer = Parameters<ScriptedUpstream['on']>[1];

async function answering(answer: Answer): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  closing.push(() => upstream.close());
  upstream.on(() => true, answer);
  return upstream;
}

const at = async (answer: Answer): Promise<Env> => ({ UPSTREAM_BASE_URL: (await answering(answer)).url });

/** An upstream behind a proxy that answers all with this status itself. */
const behindProxy = async (status: number): Promise<Env> =>
  is(`http://${NO_NAME}`, { HTTP_PROXY: (await answering(json(status, {}))).url });

/** An upstream with a certificate that nobody has signed. */
async function untrusted(env: Env = {}): Promise<Env> {
  const server = createTlsServer(selfSigned, (socket) => socket.on('error', () => {}).end('no HTTP\r\n\r\n'));
  closing.push(() => server.close());
  return { UPSTREAM_BASE_URL: `https://127.0.0.1:${await listenLocally(server)}`, ...env };
}

function trusting(): Env {
  return { UPSTREAM_CA_FILE: join(folderWith({ 'authority.pem': selfSigned.cert }), 'authority.pem') };
}

/** A store that cannot be used. */
async function storeAt(form: string, server: Server): Promise<Env> {
  closing.push(() => server.close());
  return { STORE_URL: form.replace('AT', `127.0.0.1:${await listenLocally(server)}`), SECRETS };
}

/** Names a node where nobody listens. */
const sentinelOfNobody = (socket: Socket) =>
  socket.once('data', () => socket.end('*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n-ERR\r\n'));

/** A store that wants a certificate. */
async function strict(): Promise<Env> {
  const options = { ...first.server, ca: first.ca, requestCert: true };
  const server = createTlsServer(options, (socket) => socket.on('error', () => {}));
  const STORE_CA_FILE = join(folderWith({ 'first.pem': first.ca }), 'first.pem');
  return { ...(await storeAt('rediss://AT', server)), STORE_CA_FILE };
}

const is = (UPSTREAM_BASE_URL: string, others: Env = {}) => ({ UPSTREAM_BASE_URL, ...others });

const BROKEN: readonly (readonly [string, RegExp, () => Env | Promise<Env>])[] = [
  ['a bad variable', /^bad   configuration  PORT: expected /, () => ({ PORT: 'x' })],
  ['nobody there', /^bad   upstream       gives no answer \(refused, ECONNREFUSED\)/, () => is(`http://${NOBODY}`)],
  ['a name without address', /^bad   upstream .*\(dns, /, () => is(`https://${NO_NAME}`)],
  ['a certificate that is not trusted', /^bad   upstream .*\(tls, .*UPSTREAM_CA_FILE/, untrusted],
  ['what is no HTTP behind one that is', /^bad   upstream .*\(bad_body\)/, () => untrusted(trusting())],
  [
    'a proxy that is not there',
    /^bad   upstream .*ECONNREFUSED.*look at HTTPS_PROXY and HTTP_PROXY$/,
    () => is(sandbox.url, { HTTP_PROXY: `http://${NOBODY}` }),
  ],
  ['a proxy that wants a login', /^bad   upstream .*PROXY_407\)\. The proxy wants a login: /, () => behindProxy(407)],
  ['a proxy that fails', /^bad   upstream       fails with 502.* Or it is the proxy/, () => behindProxy(502)],
  ['a wrong path', /^bad   upstream       answers 404 /, () => is(`${sandbox.url}/v7`)],
  ['a redirect', /^bad   upstream       answers 301 /, () => at(json(301, {}, { location: 'https://a.example' }))],
  ['an upstream that fails', /^bad   upstream       fails with 500/, () => at(json(500, {}))],
  ['nothing that is HTTP', /^bad   upstream       gives no answer/, () => at(bytes('SSH-2.0-x\r\n'))],
  [
    'a key that is not known',
    /^bad   key            the upstream does not know PORTICO_KEY/,
    () => is(sandbox.url, { PORTICO_KEY: secret() }),
  ],
  ['a store that wants a certificate', /^bad   store .*_CERTIFICATE_REQUIRED\)\. STORE_CERT_FILE/, strict],
  [
    'a store that is not trusted',
    /^bad   store .*\(DEPTH_ZERO_SELF_SIGNED_CERT\)\. .*STORE_CA_FILE has to /,
    () => storeAt('rediss://AT', createTlsServer(selfSigned)),
  ],
  [
    'a store without address',
    /^bad   store .*\((ENOT|EAI_)\w+\)\. Look at/,
    () => ({ STORE_URL: `redis://${NO_NAME}`, SECRETS }),
  ],
  [
    'a primary that is not there',
    /^bad   store          127\.0\.0\.1:1 does not listen \(ECONNREFUSED\)/,
    () => storeAt('redis-sentinel://AT/main', createServer(sentinelOfNobody)),
  ],
];

describe(says('says of each whether it is good and what to do'), () => {
  it.each(BROKEN)('%s', async (_, line, env) => expectNamed(line, await env()));
});

it('a key goes only to an upstream that asks for one', async () => {
  const upstream = await answering(json(429, {}));
  await examined({ UPSTREAM_BASE_URL: upstream.url, PORTICO_KEY: secret() });
  expect(upstream.calls.map(({ headers }) => headers['authorization'])).toEqual([undefined]);
});

describe(`${says('`portico doctor` also asks the upstream, the key in `PORTICO_KEY` and the store')}: the store${SKIPPED}`, () => {
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
    Object.assign(urls, { keeper: by(`keeper:${PASSWORD}`), stranger: by(`keeper:${secret('password')}`) });
    Object.assign(urls, { blind: by(`blind:${PASSWORD}`), sentinel: sentinel.url, lost: `${sentinel.url}-other` });
    const clustered = await startRedis({ ...durable, 'cluster-enabled': 'yes' });
    closing.push(() => clustered.close());
    Object.assign(urls, { clustered: clustered.url, half: sentinel.url.replace('@', `@${NOBODY},`) });
  });

  const BROKEN_STORES = [
    ['away', /^bad   store          127\.0\.0\.1:1 does not listen \(ECONNREFUSED\)\. Is it running\?/],
    ['clustered', /^bad   store          is a cluster\. /],
    ['forgetful', /^bad   store          keeps nothing on disk.*appendonly yes$/],
    ['evicts', /^bad   store          evicts.*noeviction$/],
    ['stranger', /^bad   store .*\(WRONGPASS\)/],
    ['keeper', /^bad   store          its user may not HSET, OBJECT\. /],
    ['lost', /^bad   sentinel       127\S+ does not know .*\(NO_SENTINEL\)\. /],
    ['half', /^bad   sentinel       127\.0\.0\.1:1 does not listen \(ECONNREFUSED\)/],
    ['half', /^good  sentinel       127\S+ names /],
    ['blind', /^bad   store          its user may not INFO\. /],
    ['sentinel', /^bad   store          takes purchases when it is .*\. Set min-replicas-to-write/],
    ['sentinel', /^bad   store          takes purchases for too long .*\. Set min-replicas-max-lag/],
    ['sentinel', /^bad   store          may still take .* replace it\. Set down-after-milliseconds 5000 or more$/],
  ] as const;

  it.skipIf(!hasRedis).each(BROKEN_STORES)('%s', async (name, line) => {
    await expectNamed(line, { STORE_URL: urls[name] ?? '', SECRETS });
  });

  it.skipIf(!hasRedis)('nothing where all is good, and leaves nothing behind', async () => {
    const env = { UPSTREAM_BASE_URL: sandbox.url, PORTICO_KEY: PAID_KEY, STORE_URL: urls['good'] ?? '', SECRETS };
    const { status, lines } = await examined(env);
    expect(status).toBe(0);
    expect(lines.map((line) => line.replaceAll(/\d[\d.]*/g, '#').replace('Valkey', 'Redis'))).toEqual([
      'good  configuration  a gateway would start with it',
      'good  upstream       asks for a key, as the API does (#)',
      'good  key            the upstream takes PORTICO_KEY',
      'good  store          is Redis #',
      'good  store          persists, and evicts nothing',
      'good  store          its user may do what is needed',
    ]);
    expect(lines.join()).not.toContain(PAID_KEY);
    expect(await stores[0]?.client.keys('*')).toEqual([]);
  });
});
