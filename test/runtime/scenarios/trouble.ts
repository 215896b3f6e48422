import { expect } from 'vitest';
import { expectProblem, fail, type Scenario, type Stage, visit } from '../stage.ts';

const PATH = '/api/v2/payment/transaction/';
const AUTHORIZATION = '/api/v2/proxy/ipauthorization/1091/';

/** What a read outlives, on every runtime. */
const PASSING = [
  { what: 'two answers of 503', fault: { status: 503, times: 2 } },
  { what: 'two answers of 502', fault: { status: 502, times: 2 } },
  { what: 'two connections that are cut', fault: { reset: true, times: 2 } },
] as const;

/** Retries may be a tenth of the calls of the last ten seconds: enough of them for these scenarios, however slow the machine. */
async function callOften(stage: Stage): Promise<void> {
  const other = await visit(stage, 'paid');
  await Promise.all(Array.from({ length: 100 }, (_, id) => other.call({ path: `/api/v2/apikey/${id + 1}/` })));
}

const retryScenarios = PASSING.map(({ what, fault }): Scenario => ({
  name: `a read outlives ${what}`,
  async run(stage) {
    const visitor = await visit(stage, 'paid');
    await callOften(stage);
    await fail(stage, { operation: 'listTransactions', ...fault });
    expect(await visitor.call({ path: PATH })).toMatchObject({ status: 200 });
    expect(await visitor.upstreamCalls()).toHaveLength(3);
  },
}));

/** When the upstream is in trouble. */
export const troubleScenarios: readonly Scenario[] = [
  ...retryScenarios,
  {
    name: 'an older copy is answered while the upstream fails, and marked',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const before = await visitor.call({ path: AUTHORIZATION });
      await fail(stage, { operation: 'getIpAuthorization', status: 500 });
      const older = await visitor.call({ path: AUTHORIZATION });
      expect([older.status, older.text]).toEqual([200, before.text]);
      expect(older.headers['cache-status']).toMatch(/^portico; hit; ttl=-\d+$/);
      expect(await visitor.upstreamCalls()).toHaveLength(2);
    },
  },
  {
    name: 'a 429 holds back the calls of its account, reads and writes, and of no other',
    async run(stage) {
      const [visitor, other] = [await visit(stage, 'paid'), await visit(stage, 'affiliate')];
      await fail(stage, { operation: 'listTransactions', status: 429, headers: { 'retry-after': '60' } });
      expectProblem(await visitor.call({ path: PATH }), 429, 'rate_limited');
      for (const held of [{ path: '/api/v2/subscription/' }, { path: '/api/v2/apikey/', body: { label: 'x' } }]) {
        const answer = await visitor.call(held);
        expect(expectProblem(answer, 429, 'rate_limited').outcome).toBeUndefined();
        expect(Number(answer.headers['retry-after'])).toBeGreaterThan(30);
      }
      expect(await visitor.upstreamCalls()).toEqual(['listTransactions']);
      expect(await other.call({ path: PATH })).toMatchObject({ status: 200 });
    },
  },
];
