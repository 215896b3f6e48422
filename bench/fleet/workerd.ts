import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundleWorker, WORKER_MAIN } from '../../scripts/worker-bundle.ts';
import { POLICY, SECRET } from '../harness/gateways.ts';
import { atExit } from '../harness/processes.ts';
import { freePort } from '../../scripts/free-port.ts';

interface Wanted {
  readonly upstream: string;
  /** Class of the accounts' objects; without it all is in the isolate's memory. */
  readonly objects: string | undefined;
  /** A module in front of the deployed one, to which it is `./worker.js`. */
  readonly front?: string;
}

const CORE = 0;
const FRONT = 'front.js';
const TICKS_A_SECOND = 100; // of Linux' /proc

/** The worker as it is deployed, in a workerd on a core of its own, its objects on the local disk. */
export async function startWorkerd(wanted: Wanted) {
  const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));
  const url = `http://127.0.0.1:${await freePort()}`;
  mkdirSync(join(folder, 'objects'));
  await bundleWorker({ folder, sandbox: false });
  writeFileSync(join(folder, FRONT), wanted.front ?? '');
  writeFileSync(join(folder, 'config.capnp'), configOf(new URL(url).host, wanted));
  const options = { cwd: folder, stdio: 'ignore' } as const;
  const child = spawn('taskset', ['-c', String(CORE), workerd(), 'serve', 'config.capnp'], options);
  atExit(() => child.kill('SIGKILL'));
  while (!(await fetch(`${url}/livez`).catch(() => undefined))?.ok) await sleep(25);
  return {
    url,
    cpuUs: () => cpuUsOf(child.pid ?? 0),
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Of user and system together: fields 14 and 15 of proc_pid_stat(5), counted behind the name of the program. */
function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND) * 1e6;
}

/** With the compatibility that `wrangler.toml` asks for. */
function configOf(address: string, { upstream, objects, front }: Wanted): string {
  const toml = readFileSync(new URL('../../wrangler.toml', import.meta.url), 'utf8');
  const setting = (name: string) => new RegExp(`^${name} = (.+)$`, 'm').exec(toml)?.[1];
  const vars = {
    UPSTREAM_BASE_URL: upstream,
    RATE_LIMIT_PER_MINUTE: '1000000000',
    SECRETS: SECRET,
    CACHE_POLICY: POLICY,
  };
  const texts = Object.entries(vars).map(([name, value]) => `(name = "${name}", text = ${JSON.stringify(value)})`);
  const modules = front === undefined ? [WORKER_MAIN] : [FRONT, WORKER_MAIN];
  const binding = `(name = "ACCOUNTS", durableObjectNamespace = (className = "${objects}"))`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "portico", worker = (
      modules = [${modules.map((name) => `(name = "${name}", esModule = embed "${name}")`).join(', ')}],
      compatibilityDate = ${setting('compatibility_date')},
      compatibilityFlags = ${setting('compatibility_flags')},
      bindings = [${[...texts, ...(objects === undefined ? [] : [binding])].join(', ')}],
      durableObjectNamespaces = [(className = "${objects ?? 'Account'}", uniqueKey = "portico", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),
    )),
    (name = "internet", network = (allow = ["public", "private"])),
    (name = "disk", disk = (path = "objects", writable = true)),
  ],
  sockets = [(name = "http", address = "${address}", http = (), service = "portico")],
);
`;
}

/** The program itself, which npm installs with wrangler. */
function workerd(): string {
  const ofWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'));
  return (ofWrangler('workerd') as { readonly default: string }).default;
}
