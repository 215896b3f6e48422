import { expect } from 'vitest';
import { exampleBody, exampleInput } from '../../support/examples.ts';
import { fail, type Scenario, type Stage, visit, type Visitor } from '../stage.ts';

const CONFIG = '/api/v2/referral/config/';

/** Reads, and asks for what is newer. */
async function begin(visitor: Visitor, path: string, prefer: string) {
  const { headers } = await visitor.call({ path });
  const answer = visitor.call({ path, headers: { 'If-None-Match': headers['etag'] ?? '', Prefer: prefer } });
  return { etag: headers['etag'], answer };
}

/** The sandbox says that it is done, and then something new once, and is left as it was. */
async function write(stage: Stage, visitor: Visitor) {
  await fail(stage, { operation: 'getReferralConfig', status: 200, body: exampleBody('getReferralConfig', { x: 1 }) });
  await fail(stage, { operation: 'updateReferralConfig', status: 200, body: exampleBody('updateReferralConfig') });
  return visitor.call({ method: 'PATCH', path: CONFIG, body: exampleInput('updateReferralConfig').body });
}

const ends = async (stage: Stage, path: string, prefer: string) => {
  const visitor = await visit(stage, 'paid');
  const { etag, answer } = await begin(visitor, path, prefer);
  expect((await write(stage, visitor)).status).toBe(200);
  const got = await answer;
  expect(got.status).toBe(200);
  expect(got.headers['etag']).not.toBe(etag);
  return got;
};

export const waitingScenarios: readonly Scenario[] = [
  ...['/bff/v1/referral-overview', CONFIG].map((path): Scenario => ({
    name: `who waits for a change of ${path} is answered when a write of the account is over`,
    run: async (stage) => {
      const { headers } = await ends(stage, path, 'wait=20');
      expect(headers['preference-applied']).toBe('wait=20');
    },
  })),
  {
    name: 'who wants changed sections only is sent those, as soon as they change',
    run: async (stage) => {
      const { json, headers } = await ends(stage, '/bff/v1/referral-overview', 'changed-sections, wait=20');
      expect(headers['preference-applied']).toBe('changed-sections, wait=20');
      const { data, meta } = json as { data: object; meta: { unchanged: string[] } };
      expect(Object.keys(data)).toEqual(['referral_config']);
      expect(meta.unchanged).toEqual(['credits', 'earn_outs', 'channels']);
    },
  },
  {
    name: 'a wait ends with a 304 when its time is over',
    run: async (stage) => {
      const visitor = await visit(stage, 'paid');
      const { etag, answer } = await begin(visitor, '/bff/v1/account-overview', 'wait=1');
      const { status, headers } = await answer;
      expect([status, headers['preference-applied'], headers['etag']?.replace(/^W\//, '')]).toEqual([
        304,
        'wait=1',
        etag?.replace(/^W\//, ''),
      ]);
    },
  },
];
