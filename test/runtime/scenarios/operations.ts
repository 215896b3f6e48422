import { expect } from 'vitest';
import type { AccountName } from '../../../sandbox/src/accounts.ts';
import { allOperations, type OperationId } from '../../support/account-api.ts';
import { exampleInput } from '../../support/examples.ts';
import type { TextAnswer } from '../../support/http.ts';
import { call } from '../../support/http.ts';
import { expectProblem, linked, type Problem, type Scenario, type Stage, visit, type Visitor } from '../stage.ts';

interface Sample {
  readonly as?: AccountName;
  readonly id?: string;
  readonly query?: string;
  readonly body?: unknown;
  /** What shows that a write was done; read before it too, so that an old copy would be there to give. */
  readonly shows?: string;
}

const authorization = { provider: 'sandbox', redirect_uri: 'https://app.example/callback' };

/** One good call of each documented operation; by the account `paid` unless it says otherwise. */
const SAMPLES: Readonly<Partial<Record<OperationId, Sample>>> = {
  getApiKey: { id: '1012' },
  createApiKey: { body: { label: 'server é' } },
  listPaymentMethods: { query: '?ordering=-id&page_size=1' },
  getPaymentMethod: { id: '1071' },
  deletePaymentMethod: { as: 'lapsed', shows: '/api/v2/subscription/' },
  listTransactions: { query: '?page=2&page_size=10&amount__gte=5' },
  getTransaction: { id: '1201' },
  listPendingPayments: {},
  getPendingPayment: { id: '1303' },
  purchasePlan: {
    as: 'paused',
    body: { proxy_countries: { US: 100 }, recaptcha: 'token', later: 1 },
    shows: '/api/v2/subscription/',
  },
  getSubscription: {},
  getReferralConfig: { as: 'affiliate' },
  updateReferralConfig: { as: 'nocard', body: { mode: 'payout' }, shows: '/api/v2/referral/config/' },
  listReferralCredits: { as: 'affiliate', query: '?status=pending&referral_channel=&ordering=-amount' },
  getReferralCredit: { id: '3501', as: 'affiliate' },
  listEarnOuts: { as: 'affiliate' },
  getEarnOut: { id: '3401', as: 'affiliate' },
  listReferralChannels: { as: 'affiliate' },
  getSubuser: { id: '1081', query: '?plan_id=1003' },
  refreshSubuser: { id: '1081', shows: '/api/v2/subuser/1081/' },
  getIpAuthorization: { id: '1091' },
  deleteIpAuthorization: { id: '1092', shows: '/api/v2/proxy/ipauthorization/1092/' },
  refreshProxyList: { shows: '/api/v2/subuser/1081/' },
  listProxyActivity: { query: '?page_size=5&error_reason=*&timestamp__gte=2026-06-08T00%3A00%3A00-07%3A00' },
  listNotifications: { query: '?dismissed_at__isnull=True' },
  startIdVerification: { body: {} },
  getVerificationFlow: { id: '1021' },
  registerSocial: { body: { ...authorization, code: 'sandbox-code-alice', tos_accepted: true } },
  loginSocial: { body: { ...authorization, code: 'sandbox-code-paid' } },
};

type Operation = (typeof allOperations)[number];

/** What has none above is asked as its example says. */
const sampleOf = (id: OperationId): Sample => SAMPLES[id] ?? { body: exampleInput(id).body };

const targetOf = (row: Operation, { id, query = '' }: Sample) =>
  (id === undefined ? exampleInput(row.id).path : row.path.replace('{id}', id)) + query;

/** Status and text as the sandbox sent them, and headers fit for them. */
function expectSent(stage: Stage, answer: TextAnswer): void {
  const [sent, ...more] = stage.sandbox.sentTo(answer.headers['x-request-id'] ?? '');
  expect(more).toEqual([]);
  expect([answer.status, answer.text]).toEqual([sent?.status, linked(stage, sent?.text ?? '')]);
  expect(answer.headers['content-type']).toBe(answer.text === '' ? undefined : 'application/json');
  expect(answer.headers).not.toHaveProperty('server', 'sandbox');
  expect(answer.headers).not.toHaveProperty('x-sandbox-operation');
}

/** Whether the sandbox refused an example, which it may have nothing for; then the gateway says the same. */
function isRefused(stage: Stage, { id }: Operation, answer: TextAnswer): boolean {
  const [sent] = stage.sandbox.sentTo(answer.headers['x-request-id'] ?? '');
  if (id in SAMPLES || sent === undefined || sent.status < 400) return false;
  expectProblem(answer, sent.status, (answer.json as Problem).code);
  return true;
}

async function readThrough(stage: Stage, row: Operation, sample: Sample): Promise<void> {
  const visitor = await visit(stage, sample.as ?? 'paid');
  const path = targetOf(row, sample);
  const answer = await visitor.call({ path });
  if (isRefused(stage, row, answer)) return;
  expectSent(stage, answer);
  expect(answer.text).toBe(linked(stage, (await visitor.direct({ path })).text));
  expect(answer.headers['cache-control']).toBe(row.cache ? 'private, no-cache' : 'no-store');
}

async function writeThrough(stage: Stage, row: Operation, sample: Sample): Promise<void> {
  const visitor = await visit(stage, sample.as ?? 'paid');
  const { shows, body } = sample;
  if (shows !== undefined) await expectAgreement(stage, visitor, shows);
  const answer = await visitor.call({ method: row.method, path: targetOf(row, sample), body });
  if (isRefused(stage, row, answer)) return;
  expectSent(stage, answer);
  expect([row.answer === null ? 204 : 200, 201]).toContain(answer.status);
  expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'cache-status': 'portico; fwd=method' });
  expect(answer.headers).not.toHaveProperty('etag');
  if (shows !== undefined) await expectAgreement(stage, visitor, shows);
}

/** The gateway says what the sandbox says, of things that are there and of things that are gone. */
async function expectAgreement(stage: Stage, visitor: Visitor, path: string): Promise<void> {
  const [ours, theirs] = [await visitor.call({ path }), await visitor.direct({ path })];
  expect(ours.status).toBe(theirs.status);
  if (theirs.status < 300) expect(ours.text).toBe(linked(stage, theirs.text));
}

const tableScenarios = allOperations.map((row): Scenario => ({
  name: `${row.id} answers text for text what the upstream sent`,
  run: (stage) => (row.method === 'GET' ? readThrough : writeThrough)(stage, row, sampleOf(row.id)),
}));

export const operationScenarios: readonly Scenario[] = [
  ...tableScenarios,
  {
    name: 'a key, and a token of a registration, made through the gateway can be used with it',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const made = await visitor.call({ path: '/api/v2/apikey/', body: {} });
      const { id, key } = made.json as { id: number; key: string };
      expect(await call(stage.gateway, { path: `/api/v2/apikey/${id}/`, token: key })).toMatchObject({ status: 200 });
      const registration = { ...authorization, code: 'sandbox-code-bob', tos_accepted: true };
      const registered = await call(stage.gateway, { path: '/api/v2/register/social/', body: registration });
      const { token } = registered.json as { token: string };
      const answer = await call(stage.gateway, { path: '/api/v2/subscription/', token });
      expect([answer.status, answer.json]).toMatchObject([200, { payment_method: null }]);
    },
  },
  {
    name: 'next leads through the gateway to the last page of 240 credits',
    async run(stage) {
      const visitor = await visit(stage, 'affiliate');
      const seen: number[] = [];
      let next: string | null = `${stage.gateway}/api/v2/referral/credit/?ordering=id`;
      while (next !== null) {
        const { origin, pathname, search }: URL = new URL(next);
        expect(origin).toBe(stage.gateway);
        const { json } = await visitor.call({ path: pathname + search });
        const page = json as { count: number; next: string | null; results: { id: number }[] };
        expect(page.count).toBe(240);
        seen.push(...page.results.map(({ id }) => id));
        ({ next } = page);
      }
      expect(seen).toEqual(Array.from({ length: 240 }, (_, index) => 3501 + index));
    },
  },
  {
    name: 'a path without its trailing slash is the same one, and the upstream gets the slash',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const without = await visitor.call({ path: '/api/v2/subscription' });
      expectSent(stage, without);
      const withSlash = await visitor.call({ path: '/api/v2/subscription/' });
      expect(withSlash.text).toBe(without.text);
      expect(withSlash.headers['cache-status']).toMatch(/hit/);
    },
  },
  {
    name: 'HEAD has the headers of GET and no body',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const got = await visitor.call({ path: '/api/v2/subscription/' });
      const head = await visitor.call({ method: 'HEAD', path: '/api/v2/subscription/' });
      expect([head.status, head.text, head.headers['etag']]).toEqual([200, '', got.headers['etag']]);
    },
  },
];
