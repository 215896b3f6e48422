import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningSandbox, startSandbox } from '../../sandbox/src/node.ts';
import { freePort, listenLocally } from '../support/ports.ts';
import { bytes, json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { emptyFolder, killAll, type NodeGateway, ROOT, startNode } from '../runtime/node-gateway.ts';
import { startBlackhole } from '../support/blackhole.ts';
import { hasRedis, SKIPPED, startRedis, type TestRedis } from '../support/redis.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { about, textOf } from '../../src/entry/node/doctor/findings.ts';
import { expired, selfSigned } from '../support/self-signed.ts';
import { doctor, startLate } from './helpers.ts';

const SECRETS = `${secret('sealing')}-of-more-characters`;
const PASSWORD = secret('password');
const PAID_KEY = 'sandbox-paid-key';
const REFUSED = { detail: 'No.', code: 'permission_denied' };

const at = (port: number, login = '') => `redis://${login}127.0.0.1:${port}`;

type Env = Readonly<Record<string, string>>;

/** A port where nobody listens, also none of another test. */
const NOBODY = 1;

/** What a test has started, to be closed after all. */
const closing: (() => unknown)[] = [];

let sandbox: RunningSandbox;
let gateway: NodeGateway;

beforeAll(async () => {
  sandbox = await startSandbox();
  gateway = await startNode({ UPSTREAM_BASE_URL: sandbox.url });
  closing.push(() => sandbox.close(), killAll);
});

afterAll(() => Promise.all(closing.map((close) => close())));

/** An upstream that answers everything in this way. */
async function answering(answer: Parameters<ScriptedUpstream['on']>[1]): Promise<{ UPSTREAM_BASE_URL: string }> {
  const upstream = await startUpstream();
  closing.push(() => upstream.close());
  upstream.on(() => true, answer);
  return { UPSTREAM_BASE_URL: upstream.url };
}

/** An upstream with this certificate. */
async function showing(shown: TlsOptions): Promise<{ UPSTREAM_BASE_URL: string }> {
  const server = createTlsServer(shown, (socket) => socket.on('error', () => {}));
  closing.push(() => server.close());
  return { UPSTREAM_BASE_URL: `https://127.0.0.1:${await listenLocally(server)}` };
}

async function fileOf(text: string): Promise<string> {
  const file = join(emptyFolder(), 'authority.pem');
  await writeFile(file, text);
  return file;
}

/** An upstream that wants a certificate. */
const choosy = async (): Promise<Env> => ({
  ...(await showing({ ...selfSigned, requestCert: true, ca: selfSigned.cert })),
  UPSTREAM_CA_FILE: await fileOf(selfSigned.cert),
});

/** Behind a proxy that lets nobody through. */
async function fenced(): Promise<Env> {
  const server = createServer().on('connect', (_, socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'));
  closing.push(() => server.close());
  const HTTPS_PROXY = `http://127.0.0.1:${await listenLocally(server)}`;
  return { UPSTREAM_BASE_URL: 'https://upstream.example', HTTPS_PROXY };
}

/** The sandbox over TLS, with a store's secrets, by a name and a certificate that is trusted. */
async function usual(): Promise<Env> {
  const behind = Number(new URL(sandbox.url).port);
  const server = createTlsServer(selfSigned, (socket) => {
    const to = connect(behind, '127.0.0.1');
    for (const one of [socket, to]) one.on('error', () => {});
    socket.pipe(to).pipe(socket);
  });
  closing.push(() => server.close());
  return {
    UPSTREAM_BASE_URL: `https://localhost:${await listenLocally(server)}`,
    UPSTREAM_CA_FILE: await fileOf(selfSigned.cert),
    PORTICO_KEY: PAID_KEY,
    SECRETS,
    SESSIONS: 'true',
    PUBLIC_URL: 'https://gateway.example',
    CACHE_MAX_BYTES: '1048576',
  };
}

async function silent(): Promise<{ UPSTREAM_BASE_URL: string }> {
  const port = await freePort();
  const blackhole = await startBlackhole(port);
  closing.push(() => blackhole.close());
  return { UPSTREAM_BASE_URL: `http://127.0.0.1:${port}` };
}

/** An upstream that lets the key read everything but one thing. */
async function forbidding(): Promise<Env> {
  const upstream = await startUpstream();
  closing.push(() => upstream.close());
  upstream.on(() => true, json(200, {}));
  upstream.on('GET /api/v2/subscription/', json(403, REFUSED));
  upstream.on((call) => call.headers['authorization'] === undefined, json(401, REFUSED));
  return { UPSTREAM_BASE_URL: upstream.url, PORTICO_KEY: secret() };
}

/** By the line that names what is wrong. */
const BROKEN: readonly (readonly [string, RegExp, () => Env | Promise<Env>])[] = [
  ['a bad variable', /^bad +configuration +PORT: expected /, () => ({ PORT: 'x' })],
  [
    'a name without address',
    /^bad +upstream +no address for nowhere\.invalid/,
    () => ({ UPSTREAM_BASE_URL: 'https://nowhere.invalid' }),
  ],
  [
    'a port where nobody listens',
    /^bad +upstream +127\.0\.0\.1:\d+ refuses connections/,
    () => ({ UPSTREAM_BASE_URL: `http://127.0.0.1:${NOBODY}` }),
  ],
  ['a port that drops what comes', /^bad +upstream +127\.0\.0\.1:\d+ does not answer a connection/, silent],
  [
    'a certificate that nobody trusts',
    /^bad +upstream +its certificate is of an authority that is not trusted: 127\.0\.0\.1 .*UPSTREAM_CA_FILE/,
    () => showing(selfSigned),
  ],
  [
    'a certificate that has expired',
    /^bad +upstream +its certificate has expired on 2020-02-01/,
    () => showing(expired),
  ],
  [
    'TLS where there is none',
    /^bad +upstream +127\.0\.0\.1:\d+ does not speak TLS/,
    () => ({ UPSTREAM_BASE_URL: sandbox.url.replace('http:', 'https:') }),
  ],
  [
    'a wrong path',
    /^bad +upstream +has nothing at \S+\/v7\/api\S+ \(404\)/,
    () => ({ UPSTREAM_BASE_URL: `${sandbox.url}/v7` }),
  ],
  [
    'a redirect',
    /^bad +upstream +redirects to https:\/\/upstream\.example\/api\. /,
    () => answering(json(301, {}, { location: 'https://upstream.example/api?next=1' })),
  ],
  [
    'a page',
    /^bad +upstream +answers with text\/html and 200/,
    () => answering(json(200, '<html>', { 'content-type': 'text/html; charset=utf-8' })),
  ],
  ['something that is no HTTP', /^bad +upstream +no answer that can be used/, () => answering(bytes('SSH-2.0-x\r\n'))],
  [
    'a gateway as its own upstream',
    /^bad +upstream +http:\S+ is a Portico's/,
    () => ({ UPSTREAM_BASE_URL: gateway.url }),
  ],
  [
    'a proxy that is not there',
    /^bad +upstream +the proxy 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)\. Look at HTTPS_PROXY and HTTP_PROXY$/,
    () => ({ UPSTREAM_BASE_URL: sandbox.url, HTTP_PROXY: `http://127.0.0.1:${NOBODY}` }),
  ],
  ['a proxy that refuses', /^bad +upstream +the proxy 127\.0\.0\.1:\d+ refuses \(407\)\. Look at HTTPS_PROXY/, fenced],
  [
    'no TLS where there is some',
    /^bad +upstream +no answer that can be used \((reset|tls)\)\. Is it https:\/\/ at this port\?$/,
    async () => ({ UPSTREAM_BASE_URL: (await showing(selfSigned)).UPSTREAM_BASE_URL.replace('https:', 'http:') }),
  ],
  [
    'a certificate of ours that is wanted',
    /^bad +upstream +no answer that can be used \((reset|tls)\)\. It may want a certificate of ours: UPSTREAM_CERT_FILE/,
    choosy,
  ],
  [
    'a key for which nobody asks',
    /^poor +key +PORTICO_KEY was not looked at\. The sandbox takes the upstream's place$/,
    () => ({ PORTICO_KEY: secret() }),
  ],
  [
    'a key that the upstream does not know',
    /^bad +key +the upstream does not accept PORTICO_KEY/,
    () => ({ UPSTREAM_BASE_URL: sandbox.url, PORTICO_KEY: secret() }),
  ],
  ['a key that may not read one thing', /^poor +key +may not read getSubscription \(403\)/, forbidding],
  [
    'everybody as a trusted proxy',
    /^bad +proxies +TRUSTED_PROXIES trusts 0\.0\.0\.0\/0: /,
    () => ({ TRUSTED_PROXIES: '10.0.0.0/8,0.0.0.0/0' }),
  ],
  [
    'a proxy in front that nobody named',
    /^poor +proxies +PUBLIC_URL is https, .* TRUSTED_PROXIES is not set/,
    () => ({ PUBLIC_URL: 'https://gateway.example' }),
  ],
  ['an admin port open to all', /^poor +proxies +ADMIN_HOST is 0\.0\.0\.0: /, () => ({ ADMIN_HOST: '0.0.0.0' })],
  ['sessions without an address', /^poor +proxies +SESSIONS without PUBLIC_URL/, () => ({ SESSIONS: 'true', SECRETS })],
  ['another program at its port', /^bad +gateway +something else answers/, () => ({ PORT: new URL(sandbox.url).port })],
  [
    'another program at its admin port',
    /^bad +gateway +something else listens at ADMIN_PORT, 127\.0\.0\.1:\d+\. A start would fail/,
    async () => ({ PORT: String(await freePort()), ADMIN_PORT: new URL(sandbox.url).port }),
  ],
  [
    'a cache for which there is no memory',
    /^poor +machine +\d+ MiB of memory/,
    () => ({ CACHE_MAX_BYTES: '17179869184' }),
  ],
];

/** Fails where the set-up is bad, and only there; and keeps secrets. */
async function expectNamed(line: RegExp, env: Env): Promise<void> {
  const { status, lines, all } = await doctor(env);
  expect(
    lines.filter((one) => line.test(one)),
    all,
  ).toHaveLength(1);
  expect(status).toBe(lines.some((one) => one.startsWith('bad')) ? 1 : 0);
  expect(leaksIn(all)).toEqual([]);
}

describe('the doctor names', () => {
  it.concurrent.each(BROKEN)('%s', async (_, line, env) => {
    await expectNamed(line, await env());
  });
});

const ofSubject = (lines: readonly string[], subject: string) => lines.filter((line) => line.includes(` ${subject} `));

describe('the doctor', () => {
  it('names a proxy as good once an answer has come by it, and only then', async () => {
    const proxy = await answering(json(401, REFUSED));
    const env = { UPSTREAM_BASE_URL: 'http://upstream.example' };
    const by = await doctor({ ...env, HTTP_PROXY: proxy.UPSTREAM_BASE_URL });
    const { host } = new URL(proxy.UPSTREAM_BASE_URL);
    expect(ofSubject(by.lines, 'upstream')[0]).toBe(`good  upstream       goes by the proxy ${host}`);
    const without = await doctor({ ...env, HTTP_PROXY: `http://127.0.0.1:${NOBODY}` });
    expect(ofSubject(without.lines, 'upstream')).toHaveLength(1);
  });

  it('sends a key only where the upstream asks for one', async () => {
    const upstream = await startUpstream();
    closing.push(() => upstream.close());
    upstream.on(() => true, json(429, REFUSED));
    const { lines } = await doctor({ UPSTREAM_BASE_URL: upstream.url, PORTICO_KEY: secret() });
    expect(ofSubject(lines, 'key')).toEqual([
      'poor  key            PORTICO_KEY was not looked at. It is sent only to an upstream that answers 401 or 403 without it',
    ]);
    expect(upstream.calls.length).toBeGreaterThan(0);
    expect(upstream.calls.filter(({ headers }) => headers['authorization'] !== undefined)).toEqual([]);
  });

  it('says once that it would not start', async () => {
    const { lines } = await doctor({ CACHE_POLICY: '{"getSubscripton":false}', WORKERS: 'x' });
    expect(lines).toEqual([
      'bad   configuration  CACHE_POLICY: expected only ids of operations, not "getSubscripton"; did you mean getSubscription?',
      'bad   configuration  WORKERS: expected 1, or auto on one core: several processes on one port come with a later version, and until then several instances share a store by STORE_URL. It would not start',
    ]);
  });

  it('passes on nothing that would move the cursor or turn the text', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/\u009b2J\u202ehtml\r\n\r\n';
    const { all } = await doctor(await answering(bytes(Buffer.from(`${head}no`))));
    expect(all).toMatch(/^bad +upstream +answers with text\/\S+ and 200/m);
    expect(all.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it.each(['\u0007', '\r', '\u001b[2J', '\u007f', '\u009b', '\u202e', '\u2066', '\u2028'])('writes no %j', (char) => {
    const line = textOf(about('upstream').bad(`a${char}b`, `c${char}d`));
    expect(stripVTControlCharacters(line)).toBe(
      `bad   upstream       ${`a${char}b. c${char}d`.replaceAll(char[0] ?? '', '\uFFFD')}\n`,
    );
  });
});

describe(`of a store the doctor names${SKIPPED}`, () => {
  const stores = new Map<'good' | 'forgetful' | 'evicting', TestRedis>();
  const urls = new Map<string, string>();

  beforeAll(async () => {
    if (!hasRedis) return;
    const durable = { appendonly: 'yes' };
    const [good, forgetful, evicting] = await Promise.all([
      startRedis(durable),
      startRedis(),
      startRedis({ ...durable, maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' }),
    ]);
    const rights = ['on', `>${PASSWORD}`, '~portico:*', 'resetchannels', '&portico:changes:*', '+@all', '-publish'];
    await good.client.call('ACL', 'SETUSER', 'portico', ...rights);
    await good.client.call('ACL', 'SETUSER', 'reader', 'on', `>${PASSWORD}`, '~portico:*', '&*', '+@all', '-hset');
    const most = ['+@all', '-set', '-del', '-hdel'];
    await good.client.call('ACL', 'SETUSER', 'keeper', 'on', `>${PASSWORD}`, '~portico:*', '&*', ...most);
    const far = await startLate(good.port, 300);
    const early = await startLate(good.port, 0, anHourAhead);
    for (const one of [good, forgetful, evicting, far, early]) closing.push(() => one.close());
    stores.set('good', good).set('forgetful', forgetful).set('evicting', evicting);
    const all = {
      away: at(NOBODY),
      far: at(far.port),
      forgetful: forgetful.url,
      evicting: evicting.url,
      dumb: at(good.port, `portico:${PASSWORD}@`),
      reader: at(good.port, `reader:${PASSWORD}@`),
      keeper: at(good.port, `keeper:${PASSWORD}@`),
      stranger: at(good.port, `portico:${secret('password')}@`),
      early: at(early.port),
      good: good.url,
    };
    for (const [name, url] of Object.entries(all)) urls.set(name, url);
  });

  const BROKEN_STORES = [
    ['away', /^bad +store +127\.0\.0\.1:\d+ cannot be used \(ECONNREFUSED\)/],
    ['far', /^bad +store +127\.0\.0\.1:\d+ answers in \d{3,} ms/],
    ['forgetful', /^bad +store +it keeps nothing on disk.*appendonly yes$/],
    ['evicting', /^bad +store +it evicts.*noeviction$/],
    ['dumb', /^poor +store +its user may not tell changes.*\+publish/],
    ['reader', /^bad +store +its user lacks rights\. Add '\+hset'/],
    ['keeper', /^bad +store +its user lacks rights\. Add '\+del \+set \+hdel' to its ACL$/],
    ['stranger', /^bad +store +127\.0\.0\.1:\d+ cannot be used \(WRONGPASS\)/],
    ['early', /^poor +store +its clock is 36\d\d\.\d s ahead of ours/],
  ] as const;

  (hasRedis ? it.concurrent : it.skip).each(BROKEN_STORES)('%s', async (name, line) => {
    await expectNamed(line, { STORE_URL: urls.get(name) ?? '', SECRETS });
  });

  it.skipIf(!hasRedis)('nothing where all is good, and leaves nothing behind', async () => {
    const goodStore = { STORE_URL: urls.get('good') ?? '', TRUSTED_PROXIES: '127.0.0.0/8,10.1.2.3' };
    const env = { ...(await usual()), ...goodStore, PORT: String(gateway.port) };
    const { status, lines, sum, all } = await doctor(env);
    const ofMachine = /^\w+ +machine/; // whatever that is like
    expect(lines.filter((line) => !line.startsWith('good') && !ofMachine.test(line))).toEqual([]);
    expect([status, leaksIn(all)]).toEqual([0, []]);
    expect(sum).toMatch(/^\d+ good, \d poor, 0 bad\n$/);
    for (const line of [
      /^good +upstream +localhost is .*127\.0\.0\.1/,
      /^good +upstream +TLS: certificate of 127\.0\.0\.1, until 2126-/,
      /^good +upstream +asks for a key/,
      /^good +key +may read .*\bgetSubscription\b/,
      /^good +proxies +TRUSTED_PROXIES trusts 127\.0\.0\.0\/8, 10\.1\.2\.3; of this machine: 127\.0\.0\.1/,
      /^good +gateway +one runs at http:\/\/127\.0\.0\.1:\d+ and takes requests/,
      /^good +store +its user may do what is needed/,
    ])
      expect(
        lines.filter((one) => line.test(one)),
        all,
      ).toHaveLength(1);
    expect(await stores.get('good')?.client.keys('portico:doctor:*')).toEqual([]);
    expect(all).not.toContain(PAID_KEY);
  });

  it.skipIf(!hasRedis)('what docs/doctor.md shows', async () => {
    const page = await readFile(join(ROOT, 'docs/doctor.md'), 'utf8');
    const [, sample = ''] = /```\n(good[^`]+)```/.exec(page) ?? [];
    const { lines, sum } = await doctor({
      ...(await usual()),
      STORE_URL: urls.get('forgetful') ?? '',
      PORT: String(await freePort()),
    });
    expect(inGeneral(sample)).toEqual(inGeneral(`${lines.join('\n')}\n\n${sum}`));
  });
});

/** The lines with other addresses, names and numbers, and whatever the machine is like. */
const inGeneral = (report: string) =>
  report
    .replaceAll(/^\w+( +machine).+/gm, '$1')
    .replace(/Redis|Valkey/, '#')
    .replace(/^\d+ good, \d+ poor/m, '#')
    .replace(/(?<=may read ).+/, '#')
    .replace(/(?<=certificate of ).+(?=, until)/, '#')
    .replace(/\S+ is .+(?= \(DNS)/, '# is #')
    .replaceAll(/(?:https?:\/\/)?(?:localhost|127\.0\.0\.1|[a-z]+\.example)[\w.:/-]*/g, '#')
    .replaceAll(/\d+(?:[.-]\d+)*/g, '0')
    .split('\n');

/** What the store replies to `TIME`, an hour later. */
function anHourAhead(chunk: Buffer): Buffer {
  const text = chunk.toString('latin1');
  const later = text.replace(
    /(\*2\r\n\$10\r\n)(\d{10})/g,
    (_, head: string, time: string) => head + (Number(time) + 3_600),
  );
  return Buffer.from(later, 'latin1');
}
