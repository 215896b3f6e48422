import { execFileSync, spawnSync } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { installIn } from '../scripts/install.ts';
import { cost } from './cost.ts';
import { fleet } from './fleet.ts';
import { countProblems, problem, repeatProblems } from './harness/problems.ts';
import type { Pace } from './harness/rounds.ts';
import { LOAD_CORE, stopAll } from './harness/servers.ts';
import { isWrkInstalled } from './harness/wrk.ts';

/**
 * The figures of `docs/scale.md`: `npm run bench` for what an answer costs beside others, `npm run bench:fleet` for what
 * a load takes. A core for the server, another one for load and upstream, rounds in turn. CPU an answer says most: it
 * changes little with what else the machine does.
 */
const SETS = { cost, fleet } as const;
const QUICK: Pace = { rounds: 1, seconds: 1, warmSeconds: 1 };
const FULL: Pace = { rounds: 5, seconds: 3, warmSeconds: 2 };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false } },
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
const [name = ''] = positionals;
const unfit = whatIsMissing();
if (unfit !== undefined) {
  console.error(unfit);
  process.exit(1);
}
execFileSync('taskset', ['-acp', String(LOAD_CORE), String(process.pid)], { stdio: 'ignore' });
if (name === 'cost') installIn(new URL('peers/', import.meta.url).pathname);
const load = loadavg().map((value) => value.toFixed(1));
console.log(`Node ${process.version}, load average ${load.join(' ')}. Medians [least–most] of rounds in turn.`);
for (const workload of SETS[name as keyof typeof SETS]) await run(workload);
repeatProblems();
process.exit(countProblems() > 0 ? 1 : 0);

function whatIsMissing(): string | undefined {
  if (!Object.hasOwn(SETS, name)) return `npm run bench [-- --quick], or npm run bench:fleet`;
  if (process.platform !== 'linux') return 'The bench needs Linux: it reads what a process costs in /proc.';
  if (availableParallelism() < 2) return 'The bench needs two cores, one for the server and one for the load.';
  if (spawnSync('taskset', ['-V']).error) return 'The bench needs taskset: apt install util-linux.';
  return isWrkInstalled() ? undefined : 'The bench needs wrk: apt install wrk.';
}

/** One that breaks off does not take the others with it. */
async function run(workload: (pace: Pace) => Promise<void>): Promise<void> {
  try {
    await workload(values.quick ? QUICK : FULL);
  } catch (error) {
    problem(`${workload.name} broke off: ${error instanceof Error ? error.stack : String(error)}`);
  } finally {
    await stopAll();
  }
}
