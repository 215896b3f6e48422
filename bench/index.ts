import { execFileSync, spawnSync } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { installIn } from '../scripts/install.ts';
import { countProblems, problem, repeatProblems } from './harness/problems.ts';
import { type Goal, goalsTable } from './harness/report.ts';
import { LOAD_CORE, stopAll } from './harness/servers.ts';
import { FULL, QUICK, type Workload } from './harness/workload.ts';
import { isWrkInstalled } from './harness/wrk.ts';
import { accounts } from './workloads/accounts.ts';
import { bodies } from './workloads/bodies.ts';
import { cached } from './workloads/cached.ts';
import { coldOverview } from './workloads/cold-overview.ts';
import { passthrough } from './workloads/passthrough.ts';
import { purchase } from './workloads/purchase.ts';
import { redis } from './workloads/redis.ts';
import { sessions } from './workloads/sessions.ts';
import { start } from './workloads/start.ts';
import { warm } from './workloads/warm.ts';

/**
 * Portico beside the least that could do the same work, and beside others: a core for the server, another one for load
 * and upstream, rounds in turn. CPU an answer says most: it changes little with what else the machine does.
 */
const workloads = [cached, passthrough, coldOverview, warm, purchase, accounts, bodies, redis, sessions, start];

const { quick, only } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', multiple: true } },
}).values;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
refuse(unfit());
execFileSync('taskset', ['-acp', String(LOAD_CORE), String(process.pid)], { stdio: 'ignore' });
installIn(new URL('peers/', import.meta.url).pathname);
await run(wanted());

/** What is missing here, if anything is. */
function unfit(): string | undefined {
  if (process.platform !== 'linux') return 'The bench needs Linux: it reads what a process costs in /proc.';
  if (availableParallelism() < 2) return 'The bench needs two cores, one for the server and one for the load.';
  if (spawnSync('taskset', ['-V']).error) return 'The bench needs taskset: apt install util-linux.';
  if (!isWrkInstalled()) return 'The bench needs wrk: apt install wrk.';
  const unknown = only?.find((name) => workloads.every((workload) => workload.name !== name));
  return unknown && `There is no ${unknown}, only ${workloads.map(({ name }) => name).join(', ')}.`;
}

function refuse(reason: string | undefined): void {
  if (reason === undefined) return;
  console.error(reason);
  process.exit(1);
}

function wanted(): readonly Workload[] {
  return workloads.filter(({ name }) => only?.includes(name) ?? true);
}

async function run(all: readonly Workload[]): Promise<never> {
  const load = loadavg().map((value) => value.toFixed(1));
  console.log(`Node ${process.version}, load average ${load.join(' ')}. Medians [least–most] of rounds in turn.`);
  const goals: Goal[] = [];
  for (const workload of all) goals.push(...(await found(workload)));
  if (goals.length > 0) goalsTable(goals);
  console.log(`\n${Math.round(process.uptime())} s.`);
  repeatProblems();
  process.exit(countProblems() > 0 ? 1 : 0);
}

/** One that breaks off does not take the others with it. */
async function found(workload: Workload): Promise<readonly Goal[]> {
  const before = countProblems();
  try {
    const goals = await workload.run(quick ? QUICK : FULL);
    return goals.map((goal) => ({ ...goal, isWorthless: countProblems() > before }));
  } catch (error) {
    problem(`${workload.name} broke off: ${error instanceof Error ? error.stack : String(error)}`);
    return [];
  } finally {
    await stopAll();
  }
}
