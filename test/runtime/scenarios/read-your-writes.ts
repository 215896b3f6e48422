import { expect } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { fail, hold, type Scenario, type Stage, visit, type Visitor } from '../stage.ts';
import { exampleBody, exampleInput } from '../../support/examples.ts';
import { cachedIds, isSocial, rowOf, invalidatedReads, writeIds } from '../../support/table.ts';

/** What the account `paid` has; of all else the example is answered. */
const ITEMS: Readonly<Partial<Record<OperationId, string>>> = {
  getPaymentMethod: '1071',
  getTransaction: '1201',
  getSubuser: '1081',
  refreshSubuser: '1081',
  getIpAuthorization: '1091',
  deleteIpAuthorization: '1091',
};

const pathOf = (id: OperationId) => {
  const item = ITEMS[id];
  return item === undefined ? exampleInput(id).path : rowOf(id).path.replace('{id}', item);
};

const isMissing = (id: OperationId) => rowOf(id).idForm !== undefined && !(id in ITEMS);

const CONFIG = { path: '/api/v2/referral/config/' };

/** Reads all that is cached; comes back with what the upstream was asked for anew, which should be `asked`. */
async function readAll(stage: Stage, visitor: Visitor, asked: readonly OperationId[]): Promise<readonly OperationId[]> {
  const read = async (id: OperationId) => {
    if (isMissing(id) && asked.includes(id)) await fail(stage, { operation: id, status: 200, body: exampleBody(id) });
    const { status, headers } = await visitor.call({ path: pathOf(id) });
    expect([id, status]).toEqual([id, 200]);
    return headers['cache-status'];
  };
  const missed: OperationId[] = [];
  // One after the other: on a busy machine the store has no time to spare for all of them at once.
  for (const id of cachedIds) {
    let how = await read(id);
    for (let again = 0; how === 'portico; fwd=miss' && again < 5; again++) how = await read(id); // it was late all the same
    if (how === 'portico; fwd=miss; stored') missed.push(id);
  }
  return missed;
}

/** The write, on what is read above; the sandbox says that it is done, and is left as it was. */
async function pretend(stage: Stage, visitor: Visitor, id: OperationId): Promise<void> {
  const { method, answer } = rowOf(id);
  const status = answer === null ? 204 : 200;
  await fail(stage, { operation: id, status, ...(answer !== null && { body: exampleBody(id) }) });
  const written = await visitor.call({ method, path: pathOf(id), body: exampleInput(id).body });
  expect([written.status, written.headers['cache-status']]).toEqual([status, 'portico; fwd=method']);
}

const tableScenarios = writeIds
  .filter((id) => !isSocial(id))
  .map((id): Scenario => ({
    name: `after ${id} all that it touches is asked for anew, and nothing else`,
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      expect(await readAll(stage, visitor, cachedIds)).toEqual(cachedIds);
      await pretend(stage, visitor, id);
      expect(await readAll(stage, visitor, invalidatedReads(id))).toEqual(invalidatedReads(id));
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
    // Not kept either: the upstream may still do it.
    expect(after.headers['cache-status']).toBe('portico; fwd=miss');
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
