import cluster from 'node:cluster';
import { Counter, Registry } from 'prom-client';
import { checkedConfig } from '../../../portico.ts';
import { WORKER_DEATHS } from '../metrics/instruments.ts';
import { listenForOperators } from '../operators.ts';
import { type OpenedOnNode, runtimeOf } from '../runtime.ts';
import type { Served } from '../server/serve.ts';
import { type Settings, settingsIn } from '../settings.ts';
import { onSignal } from '../signals.ts';
import { environmentAtStart, gatherAnew, sayProblems } from '../variables.ts';
import { Gathered } from './gathered.ts';
import { WorkerProcess } from './process.ts';
import { type Role, WORKER_MARK } from './role.ts';
import { Supervisor } from './supervisor.ts';

/** Starts workers, keeps them, and answers operators for all of them. */
export async function supervise(opened: OpenedOnNode, atEnd?: () => Promise<void>): Promise<Served> {
  const { settings, logger } = opened;
  cluster.schedulingPolicy = cluster.SCHED_RR; // each gets as many connections
  cluster.setupPrimary({ serialization: 'advanced', stdio: ['inherit', 'inherit', 'inherit', 'ipc', 'pipe'] });
  const counted = new Registry();
  const deaths = new Counter({ ...WORKER_DEATHS, registers: [counted] });
  const gathered = new Gathered(
    () => supervisor.workers,
    () => counted.getMetricsAsJSON(),
  );
  const env = environmentOfWorkers();
  const supervisor: Supervisor<Role> = new Supervisor(roleOf(opened, gatherAnew()), {
    fork: (role: Role) => new WorkerProcess(env, JSON.stringify(role), () => supervisor.isServing),
    logger,
    onExit(worker, isDeath) {
      gathered.forget(worker);
      if (isDeath) deaths.inc();
    },
    onHopeless: ({ code }) => void end(code ?? 1),
  });
  opened.readyWhen(() => supervisor.isServing);
  const admin = await listenForOperators(opened, gathered.scrape, []);
  let ending: Promise<void> | undefined;
  const end = (status: number): Promise<void> => (ending ??= endWith(status));
  const endWith = async (status: number) => {
    await supervisor.stop();
    await admin?.drain(0);
    await Promise.all([opened.close(), atEnd?.()]);
    await logger.end();
    process.exit(status);
  };
  const starting = supervisor.start(settings.workers);
  const renew = async () => {
    await starting;
    const role = newRole(opened);
    if (role && !ending) await supervisor.renew(role);
  };
  const onSignals = (signal: NodeJS.Signals) => {
    if (signal !== 'SIGHUP' && !ending) logger.info({ signal }, 'stopping');
    void (signal === 'SIGHUP' ? renew() : end(0));
  };
  onSignal(onSignals, () => supervisor.kill());
  const failed = await starting;
  if (failed || ending) await end(failed?.code ?? 1);
  const url = supervisor.workers.find(({ serving }) => serving)?.serving?.url ?? '';
  logger.info({ url, count: supervisor.workers.length }, 'listening');
  return { url, adminUrl: admin?.url };
}

/** As this process was started: what `.env` adds is given to each worker otherwise. */
function environmentOfWorkers(): NodeJS.ProcessEnv {
  const later = Object.keys(process.env).filter((name) => !(name in environmentAtStart));
  return { ...Object.fromEntries(later.map((name) => [name, undefined])), ...environmentAtStart, ...WORKER_MARK };
}

function roleOf({ trial }: OpenedOnNode, { environment, secrets }: ReturnType<typeof gatherAnew>): Role {
  const text = trial && { upstream: trial.upstream.href, accounts: trial.accounts };
  return { trial: text, environment, secrets };
}

/** What new workers are given; undefined, and said, where they could not start with it, or not beside the old ones. */
function newRole(opened: OpenedOnNode): Role | undefined {
  const { logger, deps, trial } = opened;
  const gathered = gatherAnew();
  const [checked, settings] = [checkedConfig(runtimeOf(gathered, trial), deps.table), settingsIn(gathered.variables)];
  if ('problems' in checked) {
    sayProblems(checked.problems);
    for (const { variable } of checked.problems) logger.error({ variable }, NOT_STARTABLE);
  }
  if ('problems' in checked || 'problems' in settings) return undefined; // of the settings they are among the others
  const changed = differing(opened, { config: checked.config, settings: settings.data });
  for (const variable of changed) logger.error({ variable }, ONLY_AT_A_START);
  return changed.length === 0 ? roleOf(opened, gathered) : undefined;
}

const NOT_STARTABLE = 'the new configuration does not start: the workers go on as they are';
const ONLY_AT_A_START = 'this variable changes only while nothing runs: the workers go on as they are';

type Parts = { readonly config: OpenedOnNode['deps']['config']; readonly settings: Settings };

/** What names records, copies and sessions: workers that differ in it would charge twice. And what this process itself has. */
function differing({ deps: { config }, settings }: OpenedOnNode, next: Parts): readonly string[] {
  const parts = (of: Parts) => ({
    STORE_URL: JSON.stringify({ ...of.settings.storeUrl, user: undefined, password: undefined }),
    UPSTREAM_BASE_URL: of.config.upstreamBaseUrl?.href,
    SECRETS: of.config.secrets.at(-1),
    ADMIN_HOST: of.config.adminHost,
    ADMIN_PORT: of.config.adminPort,
  });
  const [now, then] = [parts({ config, settings }), parts(next)];
  return Object.keys(now).filter((name) => now[name as keyof typeof now] !== then[name as keyof typeof then]);
}
