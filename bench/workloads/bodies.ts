import { startContender, startGateway, startUpstream } from '../harness/gateway.ts';
import { compare, type Contender } from '../harness/rounds.ts';
import type { Server } from '../harness/servers.ts';
import { hot, isHit, READ, type Workload } from '../harness/workload.ts';

const SIZES_KB = [1, 10, 100, 1_000];
const CONNECTIONS = 10;

/** Cached reads of larger answers. */
export const bodies: Workload = {
  name: 'bodies',
  async run({ other }) {
    const bare = await startContender('bare');
    const portico = await startGateway(await startUpstream());
    let pace = other;
    for (const kb of SIZES_KB) {
      const contenders = [sized('bare node:http', bare, kb), sized('Portico', portico, kb)];
      await compare({ title: `cached read of ${kb} KB, ${CONNECTIONS} connections`, contenders, pace });
      pace = hot(pace);
    }
    return [];
  },
};

function sized(name: string, server: Server, kb: number): Contender {
  const bytes = kb * 1_024;
  const load = { path: READ, headers: { Authorization: `Token size-${bytes}` }, connections: CONNECTIONS };
  return { name, server, load, isRight: (answer) => isHit(answer) && Buffer.byteLength(answer.text) === bytes };
}
