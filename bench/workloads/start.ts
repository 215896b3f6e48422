import { setTimeout as sleep } from 'node:timers/promises';
import { fromBundle, fromSource, gatewayEnv, startUpstream } from '../harness/gateway.ts';
import { problem } from '../harness/problems.ts';
import { type Goal, ratio, span, table } from '../harness/report.ts';
import { ask } from '../harness/rounds.ts';
import { node, spawned, type Wanted } from '../harness/servers.ts';
import { cpuUs, residentMb } from '../harness/usage.ts';
import { isComplete, OVERVIEW, type Workload } from '../harness/workload.ts';
import { median } from '../harness/processes.ts';
import { freePort } from '../../scripts/free-port.ts';

const HONO = 'bare Hono';
const SPLICE = 'bare dispatch and splicing';
const SOURCE = 'Portico from source';
const BUNDLE = 'Portico from the bundle';
const LEG_MS = 20;
const LOOK_MS = 2;
const UP_WITHIN_MS = 20_000;

interface Start {
  /** From before the process was there to the first 200. */
  readonly ms: number;
  readonly cpuMs: number;
  readonly mb: number;
  /** Of the first overview; Hono alone has none. */
  readonly overviewMs: number;
}

/** How soon a process is of use, and how much it takes by then. */
export const start: Workload = {
  name: 'start',
  async run({ starts }) {
    const { url } = await startUpstream(LEG_MS);
    const env = gatewayEnv(url, {}); // as it comes
    const contenders = {
      [HONO]: { command: node('bench/contenders/bare-hono.ts'), env },
      [SPLICE]: { command: node('bench/contenders/splice.ts'), env: { UPSTREAM: url } },
      [SOURCE]: { command: fromSource, env },
      [BUNDLE]: { command: fromBundle(), env },
    };
    const seen = new Map<string, Start[]>(Object.keys(contenders).map((name) => [name, []]));
    await look(SPLICE, contenders[SPLICE]); // the bench's own first calls are not what is measured
    for (let round = 0; round < starts; round++)
      for (const [name, one] of Object.entries(contenders)) seen.get(name)?.push(await look(name, one));
    print(seen);
    return goalsOf((name, figure) => median((seen.get(name) ?? []).map((one) => one[figure])));
  },
};

async function look(name: string, wanted: Wanted): Promise<Start> {
  const port = await freePort();
  const beganAt = performance.now();
  const server = await spawned({ ...wanted, port });
  while (!(await isUp(server.url))) {
    if (performance.now() - beganAt > UP_WITHIN_MS) throw new Error(`${name} does not start`);
    await sleep(LOOK_MS);
  }
  const ms = performance.now() - beganAt;
  const [cpuMs, mb] = [cpuUs(server.pid) / 1e3, residentMb(server.pid)];
  const overviewMs = name === HONO ? Number.NaN : await firstOverview(server.url, name);
  await server.stop();
  return { ms, cpuMs, mb, overviewMs };
}

async function isUp(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/livez`).catch(() => undefined);
  await answer?.text();
  return answer?.ok === true;
}

async function firstOverview(url: string, name: string): Promise<number> {
  const beganAt = performance.now();
  const answer = await ask(url, { path: OVERVIEW });
  if (!isComplete(answer)) problem(`${name}, first overview: ${answer.status} ${answer.text}`);
  return performance.now() - beganAt;
}

function print(seen: ReadonlyMap<string, readonly Start[]>): void {
  const rows = [...seen].map(([name, all]) => [
    name,
    span(pick(all, 'ms'), 0),
    span(pick(all, 'cpuMs'), 0),
    span(pick(all, 'mb'), 0),
    ...(name === HONO ? ['', ''] : overviewCells(pick(all, 'overviewMs'))),
  ]);
  const columns = [
    'ms to the first 200',
    'CPU ms by then',
    'MB then',
    'first overview, ms',
    `of a leg of ${LEG_MS} ms`,
  ];
  table(columns, 'start', rows);
}

const pick = (all: readonly Start[], figure: keyof Start) => all.map((one) => one[figure]);
const overviewCells = (ms: readonly number[]) => [span(ms, 1), ratio(median(ms) / LEG_MS)];

function goalsOf(of: (name: string, figure: keyof Start) => number): readonly Goal[] {
  const overview = (name: string) => of(name, 'overviewMs') / LEG_MS;
  const value = of(BUNDLE, 'ms') / of(HONO, 'ms');
  return [
    { figure: 'first overview after start, source: of a leg', value: overview(SOURCE), goal: 1.3, is: 'at most' },
    { figure: 'first overview after start, bundle: of a leg', value: overview(BUNDLE), goal: 1.3, is: 'at most' },
    { figure: 'start of the bundle to its first 200: of bare Hono', value, goal: 2, is: 'at most' },
    { figure: 'memory of the bundle at its first 200', value: of(BUNDLE, 'mb'), goal: 90, is: 'at most', unit: ' MB' },
  ];
}
