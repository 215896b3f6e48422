import { exampleInput } from '../../test/support/examples.ts';
import { startContender, startGateway, startUpstream } from '../harness/gateway.ts';
import { compare, type Contender } from '../harness/rounds.ts';
import type { Server } from '../harness/servers.ts';
import { MANY_ACCOUNTS, type Workload } from '../harness/workload.ts';

const LIMIT = 'bare dispatch';
const FASTIFY = '@fastify/http-proxy';
const PORTICO = 'Portico';
/** What is never kept. */
const load = { path: exampleInput('getApiKey').path, accounts: MANY_ACCOUNTS };

export const passthrough: Workload = {
  name: 'pass-through',
  async run({ goal }) {
    const upstream = await startUpstream();
    const contenders: readonly Contender[] = [
      passed(LIMIT, await startContender('dispatch', upstream)),
      passed(FASTIFY, await startContender('fastify-http-proxy', upstream)),
      passed('http-proxy-3', await startContender('http-proxy-3', upstream)),
      passed(PORTICO, await startGateway(upstream)),
    ];
    const passes = await compare({ title: 'pass-through, 1,000 accounts', contenders, pace: goal });
    return [
      { figure: 'pass-through, CPU: of bare dispatch', value: passes.share(PORTICO, LIMIT), goal: 0.6, is: 'at least' },
      { figure: `pass-through, CPU: of ${FASTIFY}`, value: passes.share(PORTICO, FASTIFY), goal: 1.1, is: 'at least' },
    ];
  },
};

const passed = (name: string, server: Server): Contender => ({ name, server, load });
