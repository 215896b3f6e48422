import { Hono, type MiddlewareHandler } from 'hono';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fromEnv } from '../../src/entry/node/index.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';
import { barrier, type Call, hold, json, perCall, reply, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const READ = '/api/v2/subscription/';
const OVERVIEW = '/bff/v1/referral-overview';

const CONFIG = { LOG_LEVEL: 'silent', RATE_LIMIT_PER_MINUTE: '0' };

/** A gateway to an upstream whose answers say for whom they are. */
async function openGateway(name: string) {
  const upstream = await startUpstream();
  const told = ({ headers, method, body }: Call) =>
    json(200, { plan: `${name} ${headers['authorization']} ${method} ${body}`, results: [] });
  upstream.on(() => true, perCall(told));
  const env = { ...CONFIG, UPSTREAM_BASE_URL: upstream.url };
  const gateway = portico({ ...fromEnv(env), rows: proxyAccount, overviews });
  onTestFinished(async () => {
    await gateway.drain();
    await upstream.close();
  });
  return { upstream, gateway };
}

const of = (token: string, init: RequestInit = {}): RequestInit => ({
  ...init,
  headers: { ...(init.headers as Record<string, string>), authorization: `Token ${token}` },
});

/** Mischief of a middleware, by what it does. */
const mischief: Readonly<Record<string, MiddlewareHandler>> = {
  'answers some early': async (c, next) => (Math.random() < 0.3 ? c.text('early', 503) : next()),
  'throws before': async (_, next) => {
    if (Math.random() < 0.3) throw new Error('before');
    await next();
  },
  'throws after': async (_, next) => {
    await next();
    if (Math.random() < 0.3) throw new Error('after');
  },
  'throws no error': async (_, next) => {
    await next();
    // oxlint-disable-next-line typescript/only-throw-error -- that is the mischief
    if (Math.random() < 0.3) throw 'a text';
  },
  'reads the body': async (c, next) => {
    await c.req.text();
    await next();
  },
  'clones the request': async (c, next) => {
    c.req.raw = c.req.raw.clone();
    await next();
  },
  'reads a clone of the answer': async (c, next) => {
    await next();
    await c.res.clone().text();
  },
  'changes headers of the answer': async (c, next) => {
    await next();
    c.res.headers.delete('ETag');
    c.header('Cache-Status', 'host');
    c.header('Set-Cookie', 'theme=dark');
  },
  'puts another answer in the place of ours': async (c, next) => {
    await next();
    c.res = new Response(await c.res.text(), { status: c.res.status });
  },
  'asks for no copies': async (c, next) => {
    c.req.raw.headers.set('Cache-Control', 'no-store');
    await next();
  },
  'does not wait': async (_, next) => {
    void next().catch(() => undefined);
    await Promise.resolve();
  },
};

const IDS = ['one', 'two', 'three', 'four'];

/** All that is ours and names an account names the one that has asked. */
async function expectOwn(answer: Response, token: string, others: readonly string[]) {
  const text = await answer.text();
  for (const other of others) if (other !== token) expect(text).not.toContain(other);
  if (answer.status === 200 && text.includes('Token ')) expect(text).toContain(`Token ${token}`);
}

describe.each(Object.entries(mischief))('a middleware that %s', (_, middleware) => {
  test('gives no account’s data to another, and every request its end', async () => {
    const { gateway } = await openGateway('a');
    const app = new Hono()
      .onError((_error, c) => c.text('the host’s', 500))
      .use(middleware)
      .route('/', gateway.app);
    const tokens = IDS.map(() => secret());
    const asked = Array.from({ length: 120 }, (__, n) => {
      const token = tokens[n % tokens.length]!;
      const path = [READ, OVERVIEW, '/api/v2/referral/config/'][n % 3]!;
      const write = { method: 'PATCH', body: '{"mode":"credits"}', headers: { 'content-type': 'application/json' } };
      const init = n % 7 === 0 && path !== OVERVIEW && path !== READ ? write : {};
      return { token, answer: Promise.resolve(app.request(path, of(token, init))).catch(() => undefined) };
    });
    for (const { token, answer } of asked) {
      const got = await answer; // one that a text was thrown in has none
      if (got) await expectOwn(got, token, tokens);
    }
  });
});

test('two gateways in one host, to two upstreams, know nothing of each other', async () => {
  const [one, other] = [await openGateway('one'), await openGateway('other')];
  const app = new Hono().route('/one', one.gateway.app).route('/other', other.gateway.app);
  const token = secret();
  for (let n = 0; n < 2; n++)
    for (const name of ['one', 'other']) {
      const answer = await app.request(`/${name}${READ}`, of(token));
      expect(await answer.json()).toMatchObject({ plan: `${name} Token ${token} GET ` });
    }
  expect([one.upstream.calls.length, other.upstream.calls.length]).toEqual([1, 1]);
});

test('below a path with a parameter, every tenant has their own links and the account’s one copy', async () => {
  const { upstream, gateway } = await openGateway('a');
  const app = new Hono().route('/of/:id', gateway.app);
  const tokens = [secret(), secret()];
  for (const tenant of ['7', '8'])
    for (const token of tokens) {
      const answer = await app.request(`/of/${tenant}${READ}`, of(token));
      expect(await answer.json()).toMatchObject({ plan: `a Token ${token} GET ` });
      const nothing = await app.request(`/of/${tenant}/bff/v1/nothing`, of(token));
      expect(await nothing.json()).toMatchObject({ instance: `/of/${tenant}/bff/v1/nothing` });
    }
  expect(upstream.calls).toHaveLength(2);
});

const NEXT = '/api/v2/notification/?page=2';

/** A gateway whose list links to its next page, and a handler that passes the list on, both below a parameter. */
async function openTenants() {
  const { upstream, gateway } = await openGateway('a');
  upstream.on('GET /api/v2/notification/', json(200, { count: 3, next: NEXT, results: [] }));
  const tenant = new Hono()
    .get('/own', gateway.request, async (c) => {
      const page = await c.var.portico.read(proxyAccount.listNotifications);
      return c.json({ text: page.text, parsed: page.json() });
    })
    .route('/', gateway.app);
  return new Hono().route('/of/:tenant', tenant);
}

test.each(['@me', 'x@y.example', 'x%20y', '%C3%A9', 'a,b', '$x', '%22,%22count%22:999,%22z%22:%22', '%5C', "'"])(
  'below /of/%s, as a client writes it, calls are ours and links lead back there',
  async (tenant) => {
    const app = await openTenants();
    const page = await app.request(`/of/${tenant}/api/v2/notification/`, of(secret()));
    const next = `http://localhost/of/${tenant}${NEXT}`;
    expect([page.status, await page.json()]).toEqual([200, { count: 3, next, results: [] }]);
    const own = (await (await app.request(`/of/${tenant}/own`, of(secret()))).json()) as { text: string };
    expect(own).toMatchObject({ parsed: { count: 3, next, results: [] } });
    expect(JSON.parse(own.text)).toEqual({ count: 3, next, results: [] });
    const nothing = await app.request(`/of/${tenant}/api/nothing`);
    expect(await nothing.json()).toMatchObject({ type: `/of/${tenant}/problems/unknown_endpoint` });
    expect((await app.request(`/of/${tenant}/api/v2/notificatio%6E/`, of(secret()))).status).toBe(404);
  },
);

test('a host’s server that takes any Host has good JSON in its links too', async () => {
  const app = await openTenants();
  const raw = new Request('http://localhost/of/a/api/v2/notification/', of(secret()));
  const asked = new Proxy(raw, {
    get: (target, name) =>
      name === 'url' ? target.url.replace('localhost', 'a"b') : (Reflect.get(target, name, target) as unknown),
  });
  expect(await (await app.fetch(asked)).json()).toMatchObject({ next: `http://a%22b/of/a${NEXT}` });
});

test('without serve, on another server, the instance is ready from its first request on until it is drained', async () => {
  const { gateway } = await openGateway('a');
  expect((await gateway.app.request('/readyz')).status).toBe(200);
  await gateway.drain();
  expect((await gateway.app.request('/readyz')).status).toBe(503);
});

test('a client that leaves behind a host’s middleware leaves no call behind', async () => {
  const { upstream, gateway } = await openGateway('a');
  const here = barrier();
  upstream.once(`GET ${READ}`, reply(hold(here), json(200, {})));
  const app = new Hono()
    .use(async (_, next) => {
      await next();
    })
    .route('/', gateway.app);
  const leaving = new AbortController();
  const asked = Promise.resolve(app.request(READ, of(secret(), { signal: leaving.signal })));
  const [call] = await upstream.waitForCalls(1);
  leaving.abort();
  expect((await asked).status).toBe(499);
  await upstream.disconnected(call!);
});

test('a handler of the host’s that calls for two accounts at once gives each their own', async () => {
  const { gateway } = await openGateway('a');
  const app = new Hono()
    .get('/own', gateway.request, async (c) => {
      const { portico: calls } = c.var;
      const [one, two] = await Promise.all([
        calls.read(proxyAccount.getSubscription),
        calls.read(proxyAccount.getReferralConfig),
      ]);
      return c.text(`${one.text} ${two.text}`);
    })
    .route('/', gateway.app);
  const tokens = IDS.map(() => secret());
  const asked = Array.from({ length: 40 }, (_, n) => tokens[n % tokens.length]!);
  const answers = await Promise.all(asked.map(async (token) => app.request('/own', of(token))));
  for (const [n, answer] of answers.entries()) await expectOwn(answer, asked[n]!, tokens);
});
