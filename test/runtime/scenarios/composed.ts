import { expect } from 'vitest';
import { allOverviews, referralOverview } from '../../support/account-api.ts';
import type { AccountName } from '../../../sandbox/src/accounts.ts';
import { stream } from '../../support/http.ts';
import { expectProblem, fail, hold, linked, type Scenario, type Stage, visit } from '../stage.ts';

/** Whose overview has the most to show, where that is not `paid`. */
const ACCOUNTS: Readonly<Record<string, AccountName>> = { [referralOverview.path]: 'affiliate' };

interface OverviewBody {
  readonly data: Readonly<Record<string, unknown>>;
  readonly errors: readonly unknown[];
  readonly meta: {
    readonly complete: boolean;
    readonly sections: Readonly<Record<string, { readonly state: string }>>;
  };
}

/** Every text that the upstream sent for this request stands in the answer; of the list of cards only one does. */
function expectWhole(stage: Stage, requestId: string, text: string): void {
  for (const sent of stage.sandbox.sentTo(requestId)) {
    if (sent.operation !== 'listPaymentMethods') expect(text).toContain(linked(stage, sent.text));
  }
}

const overviewScenarios = allOverviews.map(({ path, ...overview }): Scenario => ({
  name: `${path} is made of what the upstream sent, cold and warm`,
  async run(stage) {
    const sections = Object.keys(overview.sections);
    const visitor = await visit(stage, ACCOUNTS[path] ?? 'paid');
    const id = visitor.nextId();
    const cold = await visitor.call({ path });
    const { data, errors, meta } = cold.json as OverviewBody;
    expect([cold.status, errors, meta.complete]).toEqual([200, [], true]);
    expect(Object.keys(data)).toEqual(sections);
    expect(Object.values(meta.sections).map(({ state }) => state)).toEqual(sections.map(() => 'fresh'));
    expect(await visitor.upstreamCalls()).toHaveLength(sections.length);
    expectWhole(stage, id, cold.text);
    for (const section of sections) expect(cold.headers['server-timing']).toContain(`${section};dur=`);

    const warm = await visitor.call({ path });
    expect((warm.json as OverviewBody).data).toEqual(data);
    expect(warm.headers['cache-status']).toMatch(/^portico; hit; ttl=\d+$/);
    expect(warm.headers['etag']).toBe(cold.headers['etag']);
    const etag = cold.headers['etag'] ?? '';
    const same = await visitor.call({ path, headers: { 'if-none-match': etag } });
    expect([same.status, same.text]).toEqual([304, '']);
    expect(await visitor.upstreamCalls()).toHaveLength(sections.length);
  },
}));

const NDJSON = { accept: 'application/x-ndjson' };

export const composedScenarios: readonly Scenario[] = [
  ...overviewScenarios,
  {
    name: 'without a card the account overview says so and is whole',
    async run(stage) {
      const visitor = await visit(stage, 'nocard');
      const { json } = await visitor.call({ path: '/bff/v1/account-overview' });
      expect(json).toMatchObject({
        data: { payment_method: null },
        errors: [],
        meta: { complete: true, sections: { payment_method: { state: 'not_applicable' } } },
      });
    },
  },
  {
    name: 'an optional section that fails is null, and strict handling fails the whole',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const refused = { operation: 'listNotifications', status: 400, body: ['no'] };
      await fail(stage, refused);
      const part = await visitor.call({ path: '/bff/v1/account-overview' });
      expect(part.json).toMatchObject({ data: { notifications: null }, meta: { complete: false } });
      expect((part.json as OverviewBody).errors).toMatchObject([{ section: 'notifications', status: 400 }]);
      expect(part.headers['cache-control']).toBe('no-store');
      expect(part.headers).not.toHaveProperty('etag');
      await fail(stage, refused);
      const strict = await visitor.call({ path: '/bff/v1/account-overview', headers: { prefer: 'handling=strict' } });
      expectProblem(strict, 400, 'bad_request');
    },
  },
  {
    name: 'sections and fields that are not asked for are not there and cost nothing',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const query = 'sections=subscription,notifications&fields%5Bsubscription%5D=id,plan&fields%5Bnotifications%5D=id';
      const { json } = await visitor.call({ path: `/bff/v1/account-overview?${query}` });
      expect(json).toMatchObject({ data: { subscription: { id: 1005, plan: expect.any(Number) as unknown } } });
      const { data } = json as OverviewBody;
      expect(Object.keys(data)).toEqual(['subscription', 'notifications']);
      expect(Object.keys(data['subscription'] as object)).toEqual(['id', 'plan']);
      expect((data['notifications'] as { results: object[] }).results.map((item) => Object.keys(item))).toEqual([
        ['id'],
        ['id'],
      ]);
      expect(await visitor.upstreamCalls()).toHaveLength(2);
      expectProblem(await visitor.call({ path: '/bff/v1/account-overview?sections=x' }), 400, 'validation_failed');
    },
  },
  {
    name: 'NDJSON gives each section the moment it is there',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const at = await hold(stage, 'listNotifications');
      const { headers, lines } = await stream(stage.gateway, {
        path: '/bff/v1/account-overview',
        headers: NDJSON,
        token: visitor.token,
      });
      expect(headers['content-type']).toBe('application/x-ndjson');
      const seen: Record<string, unknown>[] = [];
      for await (const line of lines) {
        seen.push(JSON.parse(line) as Record<string, unknown>);
        if (seen.length === 3) at.release(); // all but the one that is held
      }
      expect(seen.map(({ section }) => section).slice(3)).toEqual(['notifications', undefined]);
      expect(seen.at(-1)).toEqual({ complete: true, etag: expect.stringMatching(/^"[^"]+"$/) as unknown });
      const { text } = await visitor.direct({ path: '/api/v2/subscription/' });
      expect(seen.find(({ section }) => section === 'subscription')).toMatchObject({
        data: JSON.parse(text) as unknown,
      });
    },
  },
  {
    name: 'a required section that fails is a problem even where NDJSON was asked for',
    async run(stage) {
      const visitor = await visit(stage, 'suspended');
      const answer = await visitor.call({ path: '/bff/v1/account-overview', headers: NDJSON });
      expectProblem(answer, 403, 'account_suspended');
    },
  },
  {
    name: 'a batch of twenty, more than a worker may connect at once, answers all in order',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const paths = [
        ...Array.from({ length: 16 }, (_, index) => `/api/v2/payment/transaction/${1201 + index}/`),
        '/api/v2/payment/transaction/?page=2',
        '/api/v2/payment/transaction/9/',
        '/api/v2/nothing/',
        '/api/v2/payment/transaction/1201/',
      ];
      const requests = paths.map((path, index) => ({ id: `r${index}`, path }));
      const { status, json, text } = await visitor.call({ path: '/bff/v1/batch', body: { requests } });
      expect(status).toBe(200);
      const { responses } = json as { responses: { id: string; status: number; body: { code?: string } }[] };
      expect(responses.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
      expect(responses.map((one) => one.status)).toEqual([...Array<number>(17).fill(200), 404, 404, 200]);
      expect(responses.slice(17, 19).map(({ body }) => body.code)).toEqual(['not_found', 'unknown_endpoint']);
      for (const path of paths.slice(0, 17))
        expect(text).toContain(linked(stage, (await visitor.direct({ path })).text));
      // The first and the last are equal and share a call.
      expect(await visitor.upstreamCalls()).toHaveLength(18);
    },
  },
  {
    name: 'a batch of twenty different reads of all kinds has twenty calls, and then none',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const paths = [
        '/api/v2/subscription/',
        '/api/v2/payment/method/',
        '/api/v2/payment/method/1071/',
        '/api/v2/payment/transaction/',
        '/api/v2/payment/transaction/?page=2',
        '/api/v2/payment/pending/',
        '/api/v2/notification/',
        '/api/v2/notification/?dismissed_at__isnull=True',
        '/api/v2/referral/config/',
        '/api/v2/referral/credit/',
        '/api/v2/referral/earnout/',
        '/api/v2/proxy/activity/',
        '/api/v2/proxy/activity/?page_size=5',
        ...Array.from({ length: 7 }, (_, index) => `/api/v2/payment/transaction/${1201 + index}/`),
      ];
      const requests = paths.map((path, index) => ({ id: String(index), path }));
      const ask = () => visitor.call({ path: '/bff/v1/batch', body: { requests } });
      const { status, json, text } = await ask();
      const { responses } = json as { responses: { id: string; status: number; body: unknown }[] };
      expect([status, responses.map((one) => one.status)]).toEqual([200, paths.map(() => 200)]);
      expect(responses.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
      for (const path of paths) expect(text).toContain(linked(stage, (await visitor.direct({ path })).text));
      expect(await visitor.upstreamCalls()).toHaveLength(20);
      expect((await ask()).text).toBe(text);
      expect(await visitor.upstreamCalls()).toHaveLength(20);
    },
  },
];
