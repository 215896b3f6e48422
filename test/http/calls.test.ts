import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { describe, expect, onTestFinished, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { fromEnv } from '../../src/entry/node/index.ts';
import type { HostEnv } from '../../src/middleware/calls.ts';
import {
  barrier,
  type Call,
  json,
  perCall,
  type ScriptedUpstream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import { portico as gatewayOf } from '../../src/portico.ts';
import { defineRows } from '../../src/upstream/operation.ts';
import { operations } from '../support/account-api.ts';
import { manualClock } from '../support/clock.ts';
import { exampleBody } from '../support/examples.ts';
import { startGateway } from '../support/gateway.ts';
import { call, type CallOptions } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { sharedStores } from '../support/stores.ts';
import { LISTED } from './cors.ts';
import { expectProblem } from './problem.ts';

const {
  deletePaymentMethod,
  getPaymentMethod,
  getSubscription,
  listNotifications,
  loginSocial,
  purchasePlan,
  refreshSubuser,
} = operations;

const PATH = '/api/v2/subscription/';
const SUBSCRIPTION = `GET ${PATH}`;
const isPost = ({ method }: Call) => method === 'POST';
const PAGE = '{"count":1,"next":null,"results":[{"id":9007199254740993,"amount":25.0}]}';

/** In the place of a token. */
const nobody = { token: '' };

const withoutEmpty = ({ token, ...options }: CallOptions) => ({ ...options, ...(token && { token }) });

type GatewayOptions = NonNullable<Parameters<typeof startGateway>[1]>;
type Handlers = (app: Hono<HostEnv>) => Hono<HostEnv>;

/** A host with handlers of its own behind `gateway.request`, and the gateway beside them. */
async function openHost(handlers: Handlers, env: Record<string, string> = {}, more: GatewayOptions = {}) {
  const upstream = await startUpstream();
  const gateway = await startGateway(upstream.url, {
    ...more,
    env,
    around: (app, request) => handlers(new Hono<HostEnv>().use('/own/*', request)).route('/', app),
  });
  onTestFinished(async () => {
    await gateway.close();
    upstream.assertNoUnexpected();
    await upstream.close();
  });
  const token = secret();
  const ask = (path: string, options: Partial<CallOptions> = {}) =>
    call(gateway.url, withoutEmpty({ path, token, ...options }));
  return { upstream, gateway, ask, token };
}

const plan: Handlers = (app) =>
  app.get('/own/plan', async (c) => {
    const subscription = await c.var.portico.read(getSubscription);
    return c.json({ plan: subscription.json().plan });
  });

const throwing: Handlers = (app) =>
  app.get('/own/throws', () => {
    throw GatewayError.of('forbidden', { detail: 'Not on Sundays.' });
  });

const answers = (upstream: ScriptedUpstream, text = '{"plan":3}') => upstream.on(SUBSCRIPTION, json(200, text));

describe('a handler of the host', () => {
  test('reads through the cache that the gateway answers from', async () => {
    const { upstream, ask } = await openHost(plan);
    answers(upstream);
    expect(await ask('/own/plan')).toMatchObject({ status: 200, json: { plan: 3 } });
    expect((await ask(PATH)).headers['cache-status']).toMatch(/^portico; hit/);
    expect(await ask('/own/plan')).toMatchObject({ status: 200, json: { plan: 3 } });
    expect(upstream.calls).toHaveLength(1);
  });

  test('is told of nobody else’s account', async () => {
    const { upstream, ask } = await openHost(plan);
    upstream.on(
      SUBSCRIPTION,
      perCall(({ headers }) => json(200, `{"plan":"${headers['authorization']}"}`)),
    );
    const tokens = [secret(), secret(), secret()];
    const all = tokens.flatMap((token) => [token, token]);
    const told = await Promise.all(all.map((token) => ask('/own/plan', { token })));
    expect(told.map(({ json: body }) => body)).toEqual(all.map((token) => ({ plan: `Token ${token}` })));
  });

  test('answers with the headers that tell of a request, and with no leave to keep it', async () => {
    const { upstream, ask, gateway } = await openHost(plan, { ALLOWED_ORIGINS: LISTED });
    answers(upstream);
    const { headers } = await ask('/own/plan', { headers: { 'x-request-id': 'mine', origin: LISTED } });
    expect(headers).toMatchObject({
      'x-request-id': 'mine',
      ratelimit: expect.stringMatching(/^"account";r=599/) as string,
      'server-timing': expect.stringContaining('total') as string,
      'access-control-allow-origin': LISTED,
      'cache-control': 'no-store',
    });
    const lines = gateway.lines.filter(({ msg }) => msg === 'request');
    expect(lines).toMatchObject([{ request_id: 'mine', route: '/own/plan', status: 200, upstream_calls: 1 }]);
    expect(lines[0]?.['account']).toBeTypeOf('string');
  });

  test('that streams what it reads gives no leave to keep it either', async () => {
    const { upstream, ask } = await openHost((app) =>
      app.get('/own/stream', (c) =>
        stream(c, async (out) => {
          await out.write((await c.var.portico.read(getSubscription)).text ?? '');
        }),
      ),
    );
    answers(upstream);
    const { text, headers } = await ask('/own/stream');
    expect([text, headers['cache-control']]).toEqual(['{"plan":3}', 'no-store']);
  });

  test('may say itself how its answer is kept', async () => {
    const { upstream, ask } = await openHost((app) =>
      app.get('/own/kept', async (c) => {
        await c.var.portico.read(getSubscription);
        return c.json({}, 200, { 'Cache-Control': 'private, max-age=5' });
      }),
    );
    answers(upstream);
    expect((await ask('/own/kept')).headers['cache-control']).toBe('private, max-age=5');
  });

  test('that asks for nothing of an account needs no credential, and is not counted', async () => {
    const { ask } = await openHost((app) => app.get('/own/time', (c) => c.text('noon')), {
      RATE_LIMIT_PER_MINUTE: '1',
    });
    for (let n = 0; n < 3; n++) {
      const { status, headers } = await ask('/own/time', { ...nobody });
      expect([status, headers['ratelimit'], headers['cache-control']]).toEqual([200, undefined, undefined]);
      expect(headers['x-request-id']).toBeTypeOf('string');
    }
  });

  test('is one request in the limit, however much it reads and writes', async () => {
    const { upstream, ask } = await openHost(
      (app) =>
        app.post('/own/all', async (c) => {
          const { portico } = c.var;
          await Promise.all([portico.read(getSubscription), portico.read(listNotifications, { query: { page: 2 } })]);
          await portico.write(deletePaymentMethod);
          await portico.read(getSubscription);
          return c.json({});
        }),
      { RATE_LIMIT_PER_MINUTE: '2' },
    );
    answers(upstream);
    upstream.on('GET /api/v2/notification/?page=2', json(200, PAGE));
    upstream.on('DELETE /api/v2/payment/method/', json(200, '{}'));
    expect((await ask('/own/all', { method: 'POST' })).headers['ratelimit']).toMatch(/^"account";r=1/);
    expect((await ask('/own/all', { method: 'POST' })).headers['ratelimit']).toMatch(/^"account";r=0/);
    expectProblem(await ask('/own/all', { method: 'POST' }), { status: 429, code: 'rate_limited' });
    // Its last read finds the copy that the request before has made after its write.
    expect(upstream.callsTo(SUBSCRIPTION)).toHaveLength(3);
  });

  test('counts once over a shared store too, where its calls are all under way before one is counted', async () => {
    const clock = manualClock();
    const { store } = sharedStores(clock);
    const { upstream, ask } = await openHost(
      (app) =>
        app.post('/own/all', async (c) => {
          const { portico } = c.var;
          const reads = Array.from({ length: 9 }, () => portico.read(getSubscription));
          await Promise.all([...reads, portico.write(deletePaymentMethod), portico.write(deletePaymentMethod)]);
          return c.json({});
        }),
      { RATE_LIMIT_PER_MINUTE: '20', SECRETS: secret('of-an-instance-of-a-host') },
      { store, clock },
    );
    answers(upstream);
    upstream.on('DELETE /api/v2/payment/method/', json(200, '{}'));
    for (const left of [19, 18, 17])
      expect((await ask('/own/all', { method: 'POST' })).headers['ratelimit']).toMatch(`"account";r=${left}`);
  });

  test('counts once for its account, whatever it calls without a credential', async () => {
    const { upstream, ask } = await openHost((app) =>
      app.post('/own/all', async (c) => {
        const { portico } = c.var;
        await portico.read(getSubscription);
        for (let n = 0; n < 3; n++) {
          await portico.write(loginSocial, { body: JSON.parse(exampleBody('loginSocial')) });
          await portico.read(getSubscription);
        }
        return c.json({});
      }),
    );
    answers(upstream);
    upstream.on('POST /api/v2/login/social/', json(200, '{"token":"t"}'));
    for (const left of [599, 598])
      expect((await ask('/own/all', { method: 'POST' })).headers['ratelimit']).toMatch(`"account";r=${left}`);
  });

  test('sees what it has written', async () => {
    let plans = 0;
    const { upstream, ask } = await openHost((app) =>
      app.post('/own/twice', async (c) => {
        const before = await c.var.portico.read(getSubscription);
        await c.var.portico.write(purchasePlan, { body: { term: 'monthly' } });
        const after = await c.var.portico.read(getSubscription);
        return c.json([before.json().plan, after.json().plan]);
      }),
    );
    upstream.on(
      SUBSCRIPTION,
      perCall(() => json(200, `{"plan":${++plans}}`)),
    );
    upstream.on(isPost, json(200, '{"payment_required":false,"plan":2}'));
    expect((await ask('/own/twice', { method: 'POST' })).json).toEqual([1, 2]);
    expect(upstream.callsTo(isPost)[0]?.body).toBe('{"term":"monthly"}');
  });

  test('writes once for a key, the client’s or its own', async () => {
    const { upstream, ask } = await openHost((app) =>
      app
        .post('/own/buy', async (c) => c.json((await c.var.portico.write(purchasePlan, { body: {} })).json()))
        .post('/own/refresh', async (c) =>
          c.json((await c.var.portico.write(refreshSubuser, { id: 7, key: 'own' })).json()),
        ),
    );
    upstream.on(isPost, json(200, '{"plan":4}'));
    const keyed = { method: 'POST', headers: { 'Idempotency-Key': 'k' } } as const;
    for (let n = 0; n < 2; n++) expect((await ask('/own/buy', keyed)).json).toEqual({ plan: 4 });
    for (let n = 0; n < 2; n++) expect((await ask('/own/refresh', { method: 'POST' })).status).toBe(200);
    expect(upstream.calls.map(({ path }) => path)).toEqual([
      '/api/v2/subscription/checkout/purchase/',
      '/api/v2/subuser/7/refresh/',
    ]);
  });

  test('that writes twice at once sends each with its own key, and each once', async () => {
    const { upstream, ask } = await openHost((app) =>
      app.post('/own/two', async (c) => {
        const { portico } = c.var;
        await Promise.all([
          portico.write(purchasePlan, { body: {}, key: 'one' }),
          portico.write(refreshSubuser, { id: 7, key: 'two' }),
        ]);
        return c.json({});
      }),
    );
    upstream.on(isPost, json(200, '{"plan":4}'));
    for (let n = 0; n < 2; n++) expect((await ask('/own/two', { method: 'POST' })).status).toBe(200);
    const keys = upstream.calls.map(({ path, headers }) => `${path} ${headers['idempotency-key']}`).toSorted();
    expect(keys).toEqual(['/api/v2/subscription/checkout/purchase/ one', '/api/v2/subuser/7/refresh/ two']);
  });

  test.each(['PUT', 'PATCH', 'DELETE', 'GET'])('buys once for a key that came with %s', async (method) => {
    const { upstream, ask } = await openHost((app) =>
      app.on(method, '/own/buy', async (c) => c.json((await c.var.portico.write(purchasePlan, { body: {} })).json())),
    );
    upstream.on(isPost, json(200, '{"plan":4}'));
    const keyed = { method, headers: { 'Idempotency-Key': 'k' } };
    for (let n = 0; n < 2; n++) expect((await ask('/own/buy', keyed)).status).toBe(200);
    expect(upstream.calls).toHaveLength(1);
  });

  test('cannot go on past the limit by catching what refuses it', async () => {
    const { upstream, ask } = await openHost(
      (app) =>
        app.post('/own/past', async (c) => {
          const { portico } = c.var;
          const codes: string[] = [];
          const note = (error: { readonly code: string }) => void codes.push(error.code);
          await portico.read(getSubscription).catch(note);
          await portico.read(listNotifications).catch(note);
          await portico.write(purchasePlan, { body: {} }).catch(note);
          return c.json(codes);
        }),
      { RATE_LIMIT_PER_MINUTE: '1' },
    );
    upstream.on(() => true, json(200, PAGE));
    expect((await ask('/own/past', { method: 'POST' })).json).toEqual([]);
    expect((await ask('/own/past', { method: 'POST' })).json).toEqual(Array.from({ length: 3 }, () => 'rate_limited'));
    expect(upstream.calls).toHaveLength(3);
  });

  test('reads anew after a write of its own that nobody answered', async () => {
    let plans = 0;
    const { upstream, ask } = await openHost((app) =>
      app.post('/own/unknown', async (c) => {
        const { portico } = c.var;
        const before = await portico.read(getSubscription);
        await portico.write(purchasePlan, { body: {} }).catch(() => undefined);
        const after = await portico.read(getSubscription);
        return c.json([before.json().plan, after.json().plan]);
      }),
    );
    upstream.on(
      SUBSCRIPTION,
      perCall(() => json(200, `{"plan":${++plans}}`)),
    );
    upstream.on(isPost, json(500, '{}'));
    expect((await ask('/own/unknown', { method: 'POST' })).json).toEqual([1, 2]);
  });

  test('sees what another request has written between two of its reads', async () => {
    let plans = 0;
    const between = barrier();
    const { upstream, ask } = await openHost((app) =>
      app.get('/own/reads', async (c) => {
        const before = await c.var.portico.read(getSubscription);
        await between.arrive();
        const after = await c.var.portico.read(getSubscription);
        return c.json([before.json().plan, after.json().plan]);
      }),
    );
    upstream.on(
      SUBSCRIPTION,
      perCall(() => json(200, `{"plan":${++plans}}`)),
    );
    upstream.on('DELETE /api/v2/payment/method/', json(200, '{}'));
    const reading = ask('/own/reads');
    await between.reached;
    expect((await ask('/api/v2/payment/method/', { method: 'DELETE' })).status).toBe(200);
    between.release();
    expect((await reading).json).toEqual([1, 2]);
  });

  test('that waits for one of two calls which fail leaves no rejection that nobody hears', async () => {
    const { upstream, ask } = await openHost((app) =>
      app.get('/own/both', async (c) => {
        const first = c.var.portico.read(getSubscription);
        const other = c.var.portico.read(listNotifications);
        return c.json([(await first).json(), (await other).json()]);
      }),
    );
    upstream.on(() => true, json(404, '{}'));
    expectProblem(await ask('/own/both'), { status: 404, code: 'not_found' });
  });

  test('behind the middleware of two gateways ends both requests, and is not to be kept', async () => {
    const one = await openHost((app) => app);
    const other = await startUpstream();
    const second = gatewayOf({
      ...fromEnv({ UPSTREAM_BASE_URL: other.url, LOG_LEVEL: 'silent' }),
      rows: operations,
    });
    onTestFinished(async () => {
      await second.drain();
      await other.close();
    });
    other.on(SUBSCRIPTION, json(200, '{"plan":2}'));
    answers(one.upstream);
    const gateway = await startGateway(one.upstream.url, {
      around: (_app, request) =>
        new Hono<HostEnv>().get(
          '/own/both',
          request,
          async (c, next) => {
            c.header('X-First', (await c.var.portico.read(getSubscription)).text ?? '');
            await next();
          },
          second.request,
          async (c) => c.json((await c.var.portico.read(getSubscription)).json()),
        ),
    });
    onTestFinished(() => gateway.close());
    const { headers, json: body } = await call(gateway.url, { path: '/own/both', token: secret() });
    expect([headers['x-first'], body, headers['cache-control']]).toEqual(['{"plan":3}', { plan: 2 }, 'no-store']);
    expect(gateway.lines.filter(({ msg }) => msg === 'request')).toMatchObject([{ status: 200, upstream_calls: 1 }]);
  });

  test('has the digits of the upstream, as text where they would be rounded', async () => {
    const { upstream, ask } = await openHost((app) =>
      app.get('/own/digits', async (c) => {
        const page = await c.var.portico.read(listNotifications);
        return c.json({ text: page.text, id: page.json().results[0]?.id });
      }),
    );
    upstream.on('GET /api/v2/notification/', json(200, PAGE));
    expect((await ask('/own/digits')).json).toEqual({ text: PAGE, id: '9007199254740993' });
  });
});

describe('what fails in a handler of the host', () => {
  test('is the problem that a client of ours gets, with one line in the log', async () => {
    const { upstream, ask, gateway } = await openHost(plan);
    upstream.on(SUBSCRIPTION, json(500, '{}'));
    const answer = await ask('/own/plan');
    expectProblem(answer, { status: 502, code: 'upstream_bad_response' });
    expect(answer.json).toMatchObject({ instance: '/own/plan' });
    const lines = gateway.lines.filter(({ msg }) => msg === 'request');
    expect(lines).toMatchObject([{ route: '/own/plan', status: 502, code: 'upstream_bad_response' }]);
  });

  test('is so without a credential, with an id that no path has, and with a bad query', async () => {
    const { ask } = await openHost((app) =>
      plan(app)
        .get('/own/card/:id', async (c) =>
          c.json((await c.var.portico.read(getPaymentMethod, { id: c.req.param('id') })).json()),
        )
        .get('/own/page', async (c) =>
          c.json((await c.var.portico.read(listNotifications, { query: { page: 0 } })).json()),
        ),
    );
    expectProblem(await ask('/own/plan', { ...nobody }), { status: 401, code: 'unauthenticated' });
    for (const id of ['abc', '1%2F2', '12345678901234567890'])
      expectProblem(await ask(`/own/card/${id}`), { status: 404, code: 'not_found' });
    expectProblem(await ask('/own/page'), { status: 400, code: 'validation_failed' });
  });

  test('can be caught, and answered otherwise', async () => {
    const { upstream, ask, gateway } = await openHost((app) =>
      app.get('/own/caught', async (c) => {
        const code = await c.var.portico.read(getSubscription).catch((error: { readonly code: string }) => error.code);
        return c.json({ code });
      }),
    );
    upstream.on(SUBSCRIPTION, json(404, '{}'));
    expect(await ask('/own/caught')).toMatchObject({ status: 200, json: { code: 'not_found' } });
    expect(gateway.lines.filter(({ msg }) => msg === 'request')).toMatchObject([{ status: 200 }]);
  });

  test('with an error of ours that it has made itself is a problem too, unless the host answers it otherwise', async () => {
    const one = await openHost(throwing);
    const answer = await one.ask('/own/throws');
    expectProblem(answer, { status: 403, code: 'forbidden', instance: '/own/throws' });
    expect(answer.json).toMatchObject({ detail: 'Not on Sundays.' });
    const lines = one.gateway.lines.filter(({ msg }) => msg === 'request');
    expect(lines).toMatchObject([{ status: 403, code: 'forbidden', route: '/own/throws' }]);
    const other = await openHost((app) => throwing(app).onError((_, c) => c.text('the host’s', 418)));
    expect(await other.ask('/own/throws')).toMatchObject({ status: 418, text: 'the host’s' });
  });

  test('of its own is the host’s, and has its line', async () => {
    const { ask, gateway } = await openHost((app) =>
      app
        .get('/own/error', () => {
          throw new Error('its own');
        })
        .onError((_, c) => c.text('the host’s', 500)),
    );
    expect(await ask('/own/error')).toMatchObject({ status: 500, text: 'the host’s' });
    expect(gateway.lines.filter(({ msg }) => msg === 'request')).toMatchObject([{ status: 500, route: '/own/error' }]);
  });

  test.each([2 ** 53 + 2, 1.5, Number.NaN])(
    'is not sent to the id %d, which is another number than was meant',
    async (id) => {
      let error: unknown;
      const { ask } = await openHost((app) =>
        app.get('/own/card', async (c) => {
          error = await c.var.portico.read(getPaymentMethod, { id }).catch((thrown: unknown) => thrown);
          return c.text('');
        }),
      );
      await ask('/own/card');
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).message).toMatch(/^the id of `getPaymentMethod` is no whole number/);
    },
  );

  test('is told by a row of the wrong kind in words for whoever has written it', async () => {
    const words: string[] = [];
    const { answer } = getSubscription;
    const foreign = defineRows({ getSubscription: { at: 'GET /elsewhere', answer } });
    const { ask } = await openHost((app) =>
      app
        // @ts-expect-error -- the compiler says so too
        .get('/own/wrong', async (c) => c.json((await c.var.portico.read(purchasePlan)).json() as object))
        .get('/own/foreign', async (c) => c.json((await c.var.portico.read(foreign.getSubscription)).json()))
        .get('/own/without', async (c) => c.json((await c.var.portico.read(getPaymentMethod)).json()))
        .onError((error, c) => {
          words.push(error.message);
          return c.text('', 500);
        }),
    );
    for (const path of ['wrong', 'without', 'foreign']) await ask(`/own/${path}`);
    expect(words).toEqual([
      'the row `purchasePlan` is no read',
      'the row `getPaymentMethod` needs an id: its path is /api/v2/payment/method/{id}/',
      'the row `getSubscription` at GET /elsewhere is not among the rows of this gateway',
    ]);
  });
});

describe('the middleware', () => {
  test('before everything leaves our own answers as they are, and their one line', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway(upstream.url, {
      around: (app, request) => new Hono<HostEnv>().use(request).route('/', app),
    });
    onTestFinished(async () => {
      await gateway.close();
      await upstream.close();
    });
    answers(upstream);
    const { status, headers } = await call(gateway.url, { path: PATH, token: secret() });
    expect([status, headers['cache-control']]).toEqual([200, 'private, no-cache']);
    expect(gateway.lines.filter(({ msg }) => msg === 'request')).toMatchObject([{ route: PATH }]);
  });

  test('answers preflights of its paths', async () => {
    const { ask } = await openHost(plan, { ALLOWED_ORIGINS: LISTED });
    const headers = { origin: LISTED, 'access-control-request-method': 'GET' };
    const answer = await ask('/own/plan', { method: 'OPTIONS', headers, ...nobody });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([204, LISTED]);
  });
});
