import { NOTHING_KEPT, startContender, startGateway, startUpstream } from '../harness/gateway.ts';
import { compare, type Contender } from '../harness/rounds.ts';
import type { Server } from '../harness/servers.ts';
import { isComplete, MANY_ACCOUNTS, OVERVIEW, type Workload } from '../harness/workload.ts';

const LIMIT = 'bare dispatch and splicing';
const PORTICO = 'Portico';
const LEG_MS = 20;
/** So few that nobody waits for the processor. */
const UNHURRIED = 10;

/** Four legs each, none of them held: at 0 ms what it costs, at 20 ms how long it takes. */
export const coldOverview: Workload = {
  name: 'cold-overview',
  async run({ goal }) {
    const upstream = await startUpstream();
    const costs = await compare({
      title: 'cold overview, legs at 0 ms, 1,000 accounts',
      contenders: await contendersOf(upstream),
      pace: goal,
    });
    const slow = await startUpstream(LEG_MS);
    const times = await compare({
      title: `cold overview, legs at ${LEG_MS} ms, ${UNHURRIED} connections`,
      contenders: await contendersOf(slow, UNHURRIED),
      pace: goal,
    });
    const p50 = times.median(PORTICO, 'p50Ms') / LEG_MS;
    return [
      { figure: 'cold overview, CPU: of splicing', value: costs.share(PORTICO, LIMIT), goal: 0.65, is: 'at least' },
      { figure: `cold overview, p50: of a leg of ${LEG_MS} ms`, value: p50, goal: 1.15, is: 'at most' },
    ];
  },
};

async function contendersOf(upstream: Server, connections?: number): Promise<readonly Contender[]> {
  const load = { path: OVERVIEW, accounts: MANY_ACCOUNTS, ...(connections !== undefined && { connections }) };
  return [
    { name: LIMIT, server: await startContender('splice', upstream), load, isRight: isComplete },
    { name: PORTICO, server: await startGateway(upstream, NOTHING_KEPT), load, isRight: isComplete },
  ];
}
