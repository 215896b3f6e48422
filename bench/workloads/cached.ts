import { startContender, startGateway, startUpstream } from '../harness/gateway.ts';
import { startNginx } from '../harness/nginx.ts';
import { ask, compare, type Contender } from '../harness/rounds.ts';
import type { Server } from '../harness/servers.ts';
import { hot, isHit, READ, type Workload } from '../harness/workload.ts';

const LIMIT = 'bare node:http';
const PORTICO = 'Portico';

/** One account asks for 1.2 KB that are held, and whether they are still what it knows. */
export const cached: Workload = {
  name: 'cached',
  async run({ goal, other }) {
    const upstream = await startUpstream();
    const limit = held(LIMIT, await startContender('bare'));
    const portico = held(PORTICO, await startGateway(upstream));
    const nginx = await startNginx(upstream.url);
    const contenders = [limit, portico, ...(nginx ? [held('nginx proxy_cache', nginx)] : [])];
    const reads = await compare({ title: 'cached read of 1.2 KB', contenders, pace: goal });
    const known = await Promise.all([limit, portico].map(unchanged));
    await compare({ title: '304', contenders: known, pace: hot(other) });
    return [
      { figure: 'cached read, CPU: of bare node:http', value: reads.share(PORTICO, LIMIT), goal: 0.85, is: 'at least' },
    ];
  },
};

const held = (name: string, server: Server): Contender => ({ name, server, load: { path: READ }, isRight: isHit });

/** The same contender, asked by a client that has the answer. */
async function unchanged(contender: Contender): Promise<Contender> {
  const { headers } = await ask(contender.server.url, contender.load);
  const load = { path: READ, headers: { 'If-None-Match': headers.get('etag') ?? '' } };
  return { ...contender, load, isRight: ({ status }) => status === 304 };
}
