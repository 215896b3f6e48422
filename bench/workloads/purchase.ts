import { exampleInput } from '../../test/support/examples.ts';
import { startContender, startGateway, startUpstream } from '../harness/gateway.ts';
import { compare, type Contender } from '../harness/rounds.ts';
import type { Server } from '../harness/servers.ts';
import { MANY_ACCOUNTS, type Workload } from '../harness/workload.ts';

const load = {
  path: exampleInput('purchasePlan').path,
  method: 'POST',
  body: '{"term":"monthly"}',
  headers: { 'Idempotency-Key': 'bench-{key}' },
  accounts: MANY_ACCOUNTS,
} as const;

/** A process that has kept some 30,000 purchases for their day refuses more: of these there are never so many. */
const FEW = { seconds: 1, warmSeconds: 1 };

/** Each with a key of its own, so that each is sent. */
export const purchase: Workload = {
  name: 'purchase',
  async run({ other }) {
    const upstream = await startUpstream();
    const contenders: readonly Contender[] = [
      bought('bare dispatch', await startContender('dispatch', upstream)),
      bought('@fastify/http-proxy', await startContender('fastify-http-proxy', upstream)),
      bought('Portico', await startGateway(upstream)),
    ];
    await compare({ title: 'purchase with a key, 1,000 accounts', contenders, pace: { ...other, ...FEW } });
    return [];
  },
};

const bought = (name: string, server: Server): Contender => ({ name, server, load });
