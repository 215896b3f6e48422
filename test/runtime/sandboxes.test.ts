import { afterEach, describe, expect, it } from 'vitest';
import { call } from '../support/http.ts';
import { killAll, ROOT, run, urlIn } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';
import { startWorker } from './worker-gateway.ts';

/** Besides what the printed curl asks for. */
const OTHERS = [
  { path: '/bff/v1/billing-overview', token: 'sandbox-paid-key' },
  { path: '/bff/v1/referral-overview', token: 'sandbox-affiliate-key' },
  { path: '/api/v2/payment/transaction/?page_size=7', token: 'sandbox-paid-key' },
  { path: '/api/v2/referral/credit/?ordering=-id', token: 'sandbox-affiliate-key' },
  { path: '/api/v2/proxy/activity/', token: 'sandbox-paid-key' },
  { path: '/api/v2/notification/', token: 'sandbox-paid-key' },
  { path: '/api/v2/subscription/', token: 'sandbox-paused-key' },
] as const;

const NDJSON = { accept: 'application/x-ndjson' };

interface Answers {
  readonly texts: readonly string[];
  readonly etags: readonly (string | undefined)[];
}

const utcDay = () => new Date().toISOString().slice(0, 10);

/** What a gateway says of its sandbox; its address, and ages, which are not of the sandbox, taken out. */
async function answersOf(url: string, printed: Ask): Promise<Answers> {
  const texts: string[] = [];
  const etags: (string | undefined)[] = [];
  for (const asked of [printed, ...OTHERS]) {
    const { status, text, headers } = await call(url, asked);
    expect([asked.path, status]).toEqual([asked.path, 200]);
    texts.push(text.replaceAll(url, 'http://gateway').replaceAll(/"age":\d+/g, '"age":n'));
    // Of a page it is of its links too, which name the gateway.
    etags.push(text.includes(url) ? undefined : headers['etag']);
  }
  const { text } = await call(url, { ...printed, headers: NDJSON });
  const lines = text.replaceAll(url, 'http://gateway').replaceAll(/,?"age":\d+/g, '');
  texts.push(lines.split('\n').toSorted().join('\n')); // they come as they are there
  return { texts, etags };
}

interface Ask {
  readonly path: string;
  readonly token: string;
}

/** `npm start`, and the request of the curl that it prints. */
async function startOnNode(): Promise<{ readonly url: string; readonly printed: Ask }> {
  const port = String(await freePort());
  const npm = run({ cwd: ROOT, env: { PORT: port, ADMIN_PORT: '0' }, command: ['npm', 'start'] });
  const curl = /curl -i -H 'Authorization: Token (\S+)' (http:\/\/[^/\s]+)(\/\S*)/;
  const [, token = '', , path = ''] = await npm.until(() => curl.exec(npm.stdout()) ?? undefined);
  return { url: await npm.until(() => urlIn(npm)), printed: { path, token } };
}

/** Both, of one day: sandboxes begin with the day, and one that was started before midnight is of the day before. */
async function bothOfOneDay(): Promise<readonly [node: Answers, worker: Answers]> {
  for (let attempt = 1; ; attempt++) {
    const day = utcDay();
    // The variable is in wrangler.toml too, as `npm run dev:worker` has it.
    const [node, worker] = await Promise.all([startOnNode(), startWorker({ SANDBOX: 'true' })]);
    const answers = [await answersOf(node.url, node.printed), await answersOf(worker.url, node.printed)] as const;
    if (utcDay() === day || attempt === 2) return answers;
    await killAll();
  }
}

const LOCAL = ['http://localhost:5173', 'http://localhost', 'http://127.0.0.1:3000', 'http://[::1]:8080'];
const NOT_LOCAL = [
  'https://localhost:5173',
  'http://localhost.evil.example',
  'http://evil.example:5173',
  'http://127.0.0.1.evil.example',
  'http://127.0.0.2',
  'http://192.168.0.1:5173',
  'null',
];

describe('npm start and npm run dev:worker', () => {
  afterEach(killAll);

  it.each([
    ['npm start', startOnNode],
    ['npm run dev:worker', () => startWorker({ SANDBOX: 'true' })],
  ])('allow pages of this machine, and no others: %s', async (_, start) => {
    const { url } = await start();
    for (const origin of [...LOCAL, ...NOT_LOCAL]) {
      const headers = { origin, 'access-control-request-method': 'GET' };
      const preflight = await call(url, { method: 'OPTIONS', path: '/bff/v1/account-overview', headers });
      const answer = await call(url, { path: '/api/v2/subscription/', token: 'sandbox-paid-key', headers: { origin } });
      const isLocal = LOCAL.includes(origin);
      expect([origin, preflight.status, answer.status]).toEqual([origin, 204, 200]);
      expect(preflight.headers['access-control-allow-methods']).toBe(
        isLocal ? 'GET, HEAD, POST, PATCH, DELETE' : undefined,
      );
      for (const { headers: said } of [preflight, answer])
        expect(said['access-control-allow-origin']).toBe(isLocal ? origin : undefined);
    }
  });

  it('answer alike, byte for byte but for ages: the printed curl, the other overviews, lists and a stream', async () => {
    const [node, worker] = await bothOfOneDay();
    expect(worker).toEqual(node);
    const [overview = ''] = node.texts;
    expect(JSON.parse(overview.replaceAll('"age":n', '"age":0'))).toMatchObject({
      data: { subscription: { id: 1005 } },
      errors: [],
      meta: { complete: true, sections: { subscription: { state: 'fresh', age: 0 } } },
    });
    expect(new Set(node.texts).size).toBe(OTHERS.length + 2); // of nothing twice
    expect(node.etags.filter((etag) => etag !== undefined).length).toBeGreaterThan(1);
  });
});
