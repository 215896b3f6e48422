import { fleetLoad } from '../harness/fleet-load.ts';
import { ALL_KEPT, startGateway, startUpstream } from '../harness/gateway.ts';
import { problem } from '../harness/problems.ts';
import { table } from '../harness/report.ts';
import { ask, compare, type Contender } from '../harness/rounds.ts';
import { LOAD_CORE, type Server } from '../harness/servers.ts';
import { residentMb } from '../harness/usage.ts';
import { isHit, READ, type Workload } from '../harness/workload.ts';

const [ONE, MANY, MOST] = [1, 1_000, 100_000];
/** Enough for a copy and what else is held of each of them. */
const ROOM = { ...ALL_KEPT, CACHE_MAX_BYTES: String(2 ** 30) };
const CONNECTIONS = 50;
const LOOKED_AT = 100;

/** Cached reads by few accounts and by many, each of them with a copy of its own. */
export const accounts: Workload = {
  name: 'accounts',
  async run({ goal }) {
    const upstream = await startUpstream();
    const one = await filled(ONE, await startGateway(upstream, ROOM));
    const many = await filled(MANY, await startGateway(upstream, ROOM));
    const empty = await startGateway(upstream, ROOM);
    const atStart = residentMb(empty.pid);
    const most = await filled(MOST, empty);
    const copies = residentMb(empty.pid) - atStart;
    const reads = await compare({ title: 'cached read, Portico', contenders: [one, many, most], pace: goal });
    await lookAt(most);
    table(['MB'], 'memory of Portico', [
      ['after start', atStart.toFixed(0)],
      [`what ${MOST.toLocaleString('en')} copies of 1.2 KB add`, copies.toFixed(0)],
    ]);
    const value = reads.share(nameOf(MOST), nameOf(ONE));
    return [{ figure: '100,000 accounts, CPU: of 1 account', value, goal: 0.8, is: 'at least' }];
  },
};

const nameOf = (count: number) => `${count.toLocaleString('en')} account${count > 1 ? 's' : ''}`;

/** Every account has asked once. */
async function filled(count: number, server: Server): Promise<Contender> {
  const load = { urls: [server.url], path: READ, accounts: count, connections: CONNECTIONS, seconds: 0 };
  const { failed } = await fleetLoad(load, LOAD_CORE);
  if (failed > 0) problem(`${nameOf(count)}: ${failed} first reads failed`);
  return { name: nameOf(count), server, load: { path: READ, accounts: count }, isRight: isHit };
}

/** What is no longer held was not measured as a hit. */
async function lookAt({ name, server, load }: Contender): Promise<void> {
  for (let account = 0; account < MOST; account += MOST / LOOKED_AT)
    if (!isHit(await ask(server.url, load, account))) problem(`${name}: account ${account} has no copy`);
}
