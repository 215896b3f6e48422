import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { describe, expect, test } from 'vitest';
import { type Calls, defineRows, GatewayError, type HostEnv } from '../../../src/index.ts';
import { operations } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { answerOf, type Asking, type Gateway, headersOf, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { answer, reset } from '../../support/upstream.ts';

const {
  deletePaymentMethod,
  getPaymentMethod,
  getSubscription,
  listNotifications,
  loginSocial,
  purchasePlan,
  refreshSubuser,
} = operations;
const READ = '/api/v2/subscription/';
const PAGE = '{"count":1,"next":null,"results":[{"id":9007199254740993,"amount":25.0}]}';

type Handler = (calls: Calls) => Promise<unknown>;
type Handlers = (app: Hono<HostEnv>) => Hono<HostEnv>;

const inHost = ({ app, handlers }: Gateway, routes: Handlers, me = secret()) => {
  const host = routes(new Hono<HostEnv>().use('/own/*', handlers)).route('/', app as unknown as Hono<HostEnv>);
  return async (path: string, { method = 'GET', ...asking }: Asking = {}) =>
    answerOf(await host.request(path, { method, headers: headersOf({ token: me, ...asking }) }));
};

/** A host whose `/own` is this handler, in one gateway for all tests. */
const gateway = openGateway();
const { upstream } = gateway;
const hosting = (act: Handler, on = gateway) =>
  inHost(on, (app) => app.all('/own/it', async (c) => c.json((await act(c.var.portico)) as object)));

const plans = async (calls: Calls) => (await calls.read(getSubscription)).text?.match(/"x_version":(\d+)/)?.[1];
const buy = (calls: Calls) => calls.write(purchasePlan, { body: { term: 'monthly' } });

const changed = async (calls: Calls) => {
  const before = await plans(calls);
  await buy(calls).catch(() => undefined);
  return [before, await plans(calls)];
};

const all: Handler = async (calls) => {
  const reads = Array.from({ length: 3 }, () => calls.read(getSubscription));
  const login = calls.write(loginSocial, { body: { provider: 'a', code: 'b', redirect_uri: 'https://a.example' } });
  await Promise.all([...reads, login, calls.read(listNotifications), calls.write(deletePaymentMethod)]);
  await calls.read(getSubscription);
  return {};
};

const cards: Handlers = (app) =>
  app
    .get('/own/card/:id', async (c) =>
      c.json((await c.var.portico.read(getPaymentMethod, { params: { id: c.req.param('id') } })).json()),
    )
    .get('/own/page', async (c) => c.json((await c.var.portico.read(listNotifications, { query: { page: 0 } })).json()))
    .get('/own/caught', async (c) =>
      c.json(await c.var.portico.read(getSubscription).catch((error: { code: string }) => error.code)),
    )
    .get('/own/both', async (c) => {
      const [first, other] = [c.var.portico.read(getSubscription), c.var.portico.read(listNotifications)];
      return c.json([(await first).json(), (await other).json()]); // nobody hears of the other
    })
    .get('/own/sunday', () => {
      throw GatewayError.of('forbidden', { detail: 'Not on Sundays.' });
    });

describe(says('A handler of the host reads'), () => {
  test('through the cache that the gateway answers from, each account its own', async () => {
    const ask = hosting(plans);
    expect((await ask('/own/it')).json).toBe('1');
    expect((await ask(READ)).cache).toMatch(/^portico; hit/);
    expect((await ask('/own/it', { token: secret() })).json).toBe('1');
    expect(upstream.calls).toHaveLength(2);
  });

  test('what it has written, though nobody knows the outcome, and what others write between two reads', async () => {
    const token = secret();
    expect((await hosting(changed)('/own/it', { token })).json).toEqual(['1', '2']);
    upstream.next('purchasePlan', () => (upstream.change(token), reset()));
    expect((await hosting(changed)('/own/it', { token })).json).toEqual(['2', '3']);
    await gateway.pass(61);
    const between = async (calls: Calls) => {
      const before = await plans(calls);
      await gateway.ask('deletePaymentMethod', { token });
      return [before, await plans(calls)];
    };
    expect((await hosting(between)('/own/it', { token })).json).toEqual(['3', '4']);
  });

  test('the digits of the upstream, as text where they would be rounded', async () => {
    upstream.next('listNotifications', answer(200, PAGE));
    const ask = hosting(async (calls) => {
      const page = await calls.read(listNotifications, { query: { page: 2 } });
      return { text: page.text, id: page.json().results[0]?.id };
    });
    expect((await ask('/own/it')).json).toEqual({ text: PAGE, id: '9007199254740993' });
    expect(upstream.calls[0]?.target).toBe('/api/v2/notification/?page=2');
  });
});

describe(says("writes through the gateway's cache, limits"), () => {
  test.each(['POST', 'PUT', 'GET'])('once for the key that came with %s, or for its own', async (method) => {
    const ask = hosting(async (calls) => {
      await Promise.all([buy(calls), calls.write(refreshSubuser, { params: { id: 7 }, key: 'own' })]);
      return {};
    });
    const asking = { method, key: 'k', token: secret() };
    for (let n = 0; n < 2; n++) expect((await ask('/own/it', asking)).status).toBe(200);
    const sent = upstream.calls.map(({ path, headers }) => `${path} ${headers['idempotency-key']}`);
    expect(new Set(sent)).toEqual(
      new Set(['/api/v2/subscription/checkout/purchase/ k', '/api/v2/subuser/7/refresh/ own']),
    );
    expect([sent.length, upstream.callsTo('purchasePlan')[0]?.body]).toEqual([2, '{"term":"monthly"}']);
  });

  test('is one request in the limit, and cannot go on past it', async () => {
    const limited = openGateway({ RATE_LIMIT_PER_MINUTE: '2' });
    const asking = { token: secret() };
    const left = async () =>
      /r=(\d+)/.exec((await hosting(all, limited)('/own/it', asking)).headers.get('ratelimit')!)?.[1];
    expect([await left(), await left()]).toEqual(['1', '0']);
    const past = hosting(async (calls) => {
      const codes: unknown[] = [];
      for (const act of [plans, buy, plans])
        await act(calls).catch((error: { code: string }) => codes.push(error.code));
      return codes;
    }, limited);
    const before = limited.upstream.calls.length;
    expect((await past('/own/it', asking)).json).toEqual(['rate_limited', 'rate_limited', 'rate_limited']);
    expect(limited.upstream.calls).toHaveLength(before);
  });
});

describe(says('limits and errors: `c.var.portico.read(rows.getSubscription)`'), () => {
  test('what fails is the problem that a client of ours gets, with one line in the log', async () => {
    const [ask, from] = [inHost(gateway, cards), gateway.lines.length];
    upstream.next('getPaymentMethod', answer(500));
    expect((await ask('/own/card/7')).json).toMatchObject({ code: 'upstream_bad_response', instance: '/own/card/7' });
    expect(gateway.lines.slice(from).filter(({ msg }) => msg === 'request')).toMatchObject([
      { route: '/own/card/:id', status: 502, code: 'upstream_bad_response' },
    ]);
    expect((await ask('/own/card/7', { token: null })).code).toBe('unauthenticated');
    for (const id of ['abc', '1%2F2', '12345678901234567890'])
      expect((await ask(`/own/card/${id}`)).code).toBe('not_found');
    expect((await ask('/own/page')).code).toBe('validation_failed');
    expect((await ask('/own/sunday')).json).toMatchObject({ status: 403, detail: 'Not on Sundays.' });
    for (const id of ['getSubscription', 'listNotifications'] as const) upstream.next(id, answer(404));
    expect((await ask('/own/both')).code).toBe('not_found');
    upstream.next('getSubscription', answer(404));
    expect(await ask('/own/caught')).toMatchObject({ status: 200, json: 'not_found' });
  });

  test('what the host answers to errors counts', async () => {
    const ask = inHost(gateway, (app) => cards(app).onError((_, c) => c.text('the host’s', 418)));
    for (const path of ['/own/sunday', '/own/page']) expect((await ask(path)).text).toBe('the host’s');
  });

  test('a mistake is told in words for whoever has written it', async () => {
    const foreign = defineRows({ getSubscription: { at: 'GET /elsewhere', answer: getSubscription.answer } });
    const wrong: readonly (readonly [Handler, string])[] = [
      // @ts-expect-error -- the compiler says so too
      [(calls) => calls.read(purchasePlan), 'the row `purchasePlan` is no read'],
      // @ts-expect-error -- here too
      [(calls) => calls.read(getPaymentMethod), '`getPaymentMethod` needs a `id`: its path is /api/v2/payment/method/'],
      // @ts-expect-error -- and here
      [(calls) => calls.read(getSubscription, { params: { id: 7 } }), '`getSubscription` takes no `id`'],
      [(calls) => calls.read(foreign.getSubscription), 'at GET /elsewhere is not among the rows of this gateway'],
      [
        (calls) => calls.read(getPaymentMethod, { params: { id: 2 ** 53 + 2 } }),
        '`id` of `getPaymentMethod` is no whole number',
      ],
    ];
    for (const [act, words] of wrong) {
      const told = hosting((calls) => act(calls).catch((error: Error) => [error.name, error.message]));
      expect((await told('/own/it')).json).toEqual(['TypeError', expect.stringContaining(words)]);
    }
  });

  test('its answers tell of the request, and give no leave to keep them, unless it says how', async () => {
    const origin = { origin: 'https://app.example' };
    const ask = inHost(openGateway({ ALLOWED_ORIGINS: origin.origin, RATE_LIMIT_PER_MINUTE: '1' }), (app) =>
      app
        .get('/own/time', (c) => c.text('noon'))
        .get('/own/stream', (c) => stream(c, async (out) => void (await out.write((await plans(c.var.portico)) ?? ''))))
        .get('/own/kept', async (c) => {
          await plans(c.var.portico);
          return c.json({}, 200, { 'Cache-Control': 'private, max-age=5' });
        }),
    );
    const names = ['ratelimit', 'cache-control', 'access-control-allow-origin'];
    const told = async (path: string, asking: Asking) => {
      const { status, headers } = await ask(path, { headers: origin, token: secret(), ...asking });
      expect(headers.get('x-request-id')).toBeTruthy();
      return [status, ...names.map((name) => headers.get(name))];
    };
    const limit = expect.stringContaining('r=0') as string;
    for (let n = 0; n < 3; n++)
      expect(await told('/own/time', { token: null })).toEqual([200, null, null, origin.origin]);
    expect(await told('/own/stream', {})).toEqual([200, limit, 'no-store', origin.origin]);
    expect(await told('/own/kept', {})).toEqual([200, limit, 'private, max-age=5', origin.origin]);
    const preflight = { ...origin, 'access-control-request-method': 'GET' };
    expect((await told('/own/kept', { method: 'OPTIONS', headers: preflight, token: null }))[0]).toBe(204);
  });
});
