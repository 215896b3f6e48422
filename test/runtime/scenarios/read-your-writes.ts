import { expect } from 'vitest';
import type { Operation } from '../../../src/upstream/operation.ts';
import { allOperations, type OperationId, operations } from '../../../src/upstream/operations/index.ts';
import { fail, hold, type Scenario, type Stage, visit, type Visitor } from '../stage.ts';
import { exampleBody, exampleInput } from '../../support/examples.ts';
import { touchedBy } from '../../support/table.ts';

/** Reads of the account `paid` that are cached, with what they ask for. */
const READS: Readonly<Partial<Record<OperationId, string>>> = {
  getSubscription: '',
  listPaymentMethods: '',
  getPaymentMethod: '1071',
  getReferralConfig: '',
  listReferralChannels: '',
  listReferralCredits: '',
  listEarnOuts: '',
  listTransactions: '',
  getTransaction: '1201',
  listPendingPayments: '',
  listNotifications: '',
  getSubuser: '1081',
  getIpAuthorization: '1091',
  listProxyActivity: '',
};

// The keys of a literal above.
const reads = Object.keys(READS) as OperationId[];

const rows: Readonly<Record<string, Operation>> = operations;

const pathOf = (id: OperationId, item: string) => (rows[id]?.path ?? '').replace('{id}', item);

const CONFIG = { path: '/api/v2/referral/config/' };

const readAll = (visitor: Visitor) =>
  Promise.all(
    reads.map(async (id) => {
      const { status, headers } = await visitor.call({ path: pathOf(id, READS[id] ?? '') });
      expect([id, status]).toEqual([id, 200]);
      return [id, headers['cache-status'] ?? ''] as const;
    }),
  );

/** The write, on what is read above; the sandbox says that it is done, and is left as it was. */
async function pretend(stage: Stage, visitor: Visitor, { id, method, path, answer }: Operation): Promise<void> {
  const status = answer === null ? 204 : 200;
  const operation = id as OperationId; // a row of the table
  await fail(stage, { operation, status, ...(answer !== null && { body: exampleBody(operation) }) });
  const item = path.includes('ipauthorization') ? '1091' : '1081';
  const { body } = exampleInput(operation);
  const written = await visitor.call({ method, path: path.replace('{id}', item), body });
  expect([written.status, written.headers['cache-status']]).toEqual([status, 'portico; fwd=method']);
}

const tableScenarios = allOperations
  .filter(({ method, credential }) => method !== 'GET' && credential !== 'none')
  .map((row): Scenario => ({
    name: `after ${row.id} all that it touches is asked for anew, and nothing else`,
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      for (const [, cache] of await readAll(visitor)) expect(cache).toBe('portico; fwd=miss; stored');
      await pretend(stage, visitor, row);
      const anew = (await readAll(visitor)).filter(([, cache]) => cache === 'portico; fwd=miss; stored');
      expect(anew.map(([id]) => id)).toEqual(reads.filter((id) => touchedBy(row.id).includes(id)));
    },
  }));

/** Writes whose client does not learn that they were done. */
const LOST = [
  ['fails with status 500', { status: 500 }],
  ['is lost with its connection', { reset: true }],
] as const;

const lostScenarios = LOST.map(([what, fault]): Scenario => ({
  name: `a PATCH whose answer ${what} counts as done for the reads after it`,
  async run(stage) {
    const visitor = await visit(stage, 'nocard');
    const { mode } = (await visitor.call(CONFIG)).json as { mode: string };
    const other = mode === 'payout' ? 'credits' : 'payout';
    await fail(stage, { operation: 'updateReferralConfig', afterWork: true, ...fault });
    const { json } = await visitor.call({ ...CONFIG, method: 'PATCH', body: { mode: other } });
    expect(json).toMatchObject({ status: 502, outcome: 'unknown' });
    const after = await visitor.call(CONFIG);
    expect(after.headers['cache-status']).toBe('portico; fwd=miss; stored');
    expect(after.json).toMatchObject({ mode: other });
  },
}));

export const readYourWritesScenarios: readonly Scenario[] = [
  ...tableScenarios,
  ...lostScenarios,
  {
    name: 'a read that was under way when a write began is answered and not stored',
    async run(stage) {
      const visitor = await visit(stage, 'nocard');
      const at = await hold(stage, 'getReferralConfig');
      const slow = visitor.call(CONFIG);
      await at.reached;
      const patched = await visitor.call({ ...CONFIG, method: 'PATCH', body: { mode: 'credits' } });
      expect(patched.status).toBe(200);
      // The one after the write does not join the one from before it.
      const after = await visitor.call(CONFIG);
      expect([after.text, after.headers['cache-status']]).toEqual([patched.text, 'portico; fwd=miss; stored']);
      at.release();
      expect((await slow).headers['cache-status']).toBe('portico; fwd=miss');
      const held = await visitor.call(CONFIG);
      expect(held.text).toBe(patched.text);
      expect(held.headers['cache-status']).toMatch(/^portico; hit; ttl=\d+$/);
    },
  },
];
