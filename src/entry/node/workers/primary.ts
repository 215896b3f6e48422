import cluster from 'node:cluster';
import { Counter, Registry } from 'prom-client';
import { openConsole } from '../console/index.ts';
import { listenForOperators } from '../operators.ts';
import type { OpenedOnNode } from '../runtime.ts';
import type { Served } from '../server/serve.ts';
import { onSignal } from '../signals.ts';
import { environmentAtStart } from '../variables.ts';
import { Gathered } from './gathered.ts';
import { WorkerProcess } from './process.ts';
import { roleVariable } from './role.ts';
import { Supervisor } from './supervisor.ts';

/** Starts workers, keeps them, and answers operators for all of them. */
export async function supervise(opened: OpenedOnNode, atEnd?: () => Promise<void>): Promise<Served> {
  const { settings, logger } = opened;
  cluster.schedulingPolicy = cluster.SCHED_RR; // each gets as many connections
  cluster.setupPrimary({ serialization: 'advanced' });
  const counted = new Registry();
  const deaths = new Counter({ name: 'portico_worker_deaths_total', help: DEATHS, registers: [counted] });
  const gathered = new Gathered(
    () => supervisor.workers,
    () => counted.getMetricsAsJSON(),
  );
  const env = environmentOf(opened);
  const supervisor = new Supervisor({
    fork: () => new WorkerProcess(env, () => supervisor.isServing),
    logger,
    onExit(worker, isDeath) {
      gathered.forget(worker);
      if (isDeath) deaths.inc();
    },
    onHopeless: ({ code }) => void end(code ?? 1),
  });
  opened.readyWhen(() => supervisor.isServing);
  const shown = openConsole({ ...opened, recordings: gathered, read: gathered.read });
  const admin = await listenForOperators(opened, gathered.scrape, shown.routes);
  let isEnding = false;
  const failed = await supervisor.start(settings.workers);
  if (failed) await end(failed.code ?? 1);
  async function end(status: number): Promise<void> {
    if (isEnding) return;
    isEnding = true;
    shown.end();
    await supervisor.stop();
    await admin?.drain(0);
    await Promise.all([opened.close(), atEnd?.()]);
    await logger.end();
    process.exit(status);
  }
  onSignal((signal) => {
    if (signal !== 'SIGHUP' && !isEnding) logger.info({ signal }, 'stopping');
    void (signal === 'SIGHUP' ? supervisor.renew() : end(0));
  });
  const [first] = supervisor.workers;
  const url = first?.serving?.url ?? '';
  logger.info({ url, count: supervisor.workers.size }, 'listening');
  return { url, adminUrl: admin?.url };
}

const DEATHS = 'Processes that ended by themselves, and were replaced.';

/** As this process was started, so that each worker reads `.env` and files anew. */
function environmentOf({ trial }: OpenedOnNode): NodeJS.ProcessEnv {
  const later = Object.keys(process.env).filter((name) => !(name in environmentAtStart));
  const text = trial && { upstream: trial.upstream.href, accounts: trial.accounts };
  return {
    ...Object.fromEntries(later.map((name) => [name, undefined])),
    ...environmentAtStart,
    ...roleVariable({ trial: text }),
  };
}
