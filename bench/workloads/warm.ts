import { allOperations } from '../../test/support/account-api.ts';
import { exampleInput } from '../../test/support/examples.ts';
import { startGateway, startUpstream } from '../harness/gateway.ts';
import { type Answer, compare, type Contender } from '../harness/rounds.ts';
import { isComplete, isHit, OVERVIEW, READ, type Workload } from '../harness/workload.ts';

const CACHED = 'cached read';
const WARM = 'overview';
const TEN = 10;

const kept = allOperations.filter(({ cache }) => cache).slice(0, TEN);
const requests = kept.map(({ id }) => ({ id, path: exampleInput(id).path }));
const batch = { path: '/bff/v1/batch', method: 'POST', body: JSON.stringify({ requests }) } as const;
const isAllOfTen = ({ text }: Answer) => (text.match(/"status":200/g) ?? []).length === TEN;

/** What one process does with what it holds, one account asking. */
export const warm: Workload = {
  name: 'warm',
  async run({ goal }) {
    const server = await startGateway(await startUpstream());
    const lines = { path: OVERVIEW, headers: { Accept: 'application/x-ndjson' } };
    const contenders: readonly Contender[] = [
      { name: CACHED, server, load: { path: READ }, isRight: isHit },
      { name: WARM, server, load: { path: OVERVIEW }, isRight: isComplete },
      { name: 'overview, NDJSON', server, load: lines, isRight: isComplete },
      { name: 'batch of ten reads', server, load: batch, isRight: isAllOfTen },
    ];
    const warmed = await compare({ title: 'warm, one process of Portico', contenders, pace: goal });
    const value = warmed.share(WARM, CACHED);
    return [{ figure: 'warm overview, CPU: of a cached read', value, goal: 0.75, is: 'at least' }];
  },
};
