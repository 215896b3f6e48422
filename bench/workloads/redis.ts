import { SECRET } from '../harness/gateways.ts';
import { redisBinary, startRedis } from '../harness/redis.ts';
import { ALL_KEPT, startGateway, startUpstream } from '../harness/gateway.ts';
import { compare, type Contender } from '../harness/rounds.ts';
import { LOAD_CORE } from '../harness/servers.ts';
import { isHit, READ, type Workload } from '../harness/workload.ts';

const WITHOUT = 'Portico, its own memory';
const WITH = 'Portico, Redis';

/** What a store adds to a cached read, where nothing else is waited for. */
export const redis: Workload = {
  name: 'redis',
  async run({ goal }) {
    if (redisBinary === undefined) return skipped();
    const upstream = await startUpstream();
    const store = await startRedis(LOAD_CORE);
    const shared = { ...ALL_KEPT, STORE_URL: store.url, SECRETS: SECRET };
    const load = { path: READ, connections: 1 };
    const contenders: readonly Contender[] = [
      { name: WITHOUT, server: await startGateway(upstream), load, isRight: isHit },
      { name: WITH, server: await startGateway(upstream, shared), load, isRight: isHit },
    ];
    const reads = await compare({ title: 'cached read, 1 connection', contenders, pace: goal });
    await store.stop();
    const value = reads.median(WITH, 'p50Ms') - reads.median(WITHOUT, 'p50Ms');
    return [{ figure: 'what Redis adds to a cached read, p50', value, goal: 0.5, is: 'at most', unit: ' ms' }];
  },
};

function skipped(): [] {
  console.log('\nNeither redis-server nor valkey-server is installed: nothing is measured with a store.');
  return [];
}
