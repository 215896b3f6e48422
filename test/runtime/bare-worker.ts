import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { bundleWorker, WORKER_LATER, WORKER_MAIN } from '../../scripts/worker-bundle.ts';
import { call } from '../support/http.ts';
import { emptyFolder, ROOT, run, type Running } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';
import type { WorkerGateway } from './worker-gateway.ts';

/**
 * The worker alone in a workerd, with the compatibility that `wrangler.toml` asks for and nothing before it: it hears
 * of clients that leave as it does when it is deployed. They have to leave with an RST, since to workerd a FIN is only
 * the end of what they say.
 */
export async function startBareWorker(
  vars: Readonly<Record<string, string>>,
  other: Other = {},
): Promise<WorkerGateway> {
  const { urls, ...running } = await serve({ folder: emptyFolder(), vars, isolates: 1, ...other });
  return { ...running, url: urls[0]! };
}

export interface WorkerFleet extends Running {
  /** One for each isolate. */
  readonly urls: readonly string[];
  /** Where the objects of the accounts have their files. */
  readonly objects: string;
  /** The process gone with SIGKILL, and another one with the same objects; at other ports, with these variables. */
  restart(vars?: Readonly<Record<string, string>>): Promise<WorkerFleet>;
}

/** Several isolates of the worker, which have nothing in common but the objects of the accounts: those live with the first. */
export function startBareWorkers(vars: Readonly<Record<string, string>>, isolates: number): Promise<WorkerFleet> {
  return serve({ folder: emptyFolder(), vars, isolates });
}

/** Another worker than the one that is deployed. */
interface Other {
  readonly entry?: string | undefined;
  /** Where it says that it lives. */
  readonly probe?: string | undefined;
}

interface Serving extends Other {
  readonly folder: string;
  readonly vars: Readonly<Record<string, string>>;
  readonly isolates: number;
}

async function serve({ folder, vars, isolates, entry, probe = '/livez' }: Serving): Promise<WorkerFleet> {
  const objects = join(folder, 'objects');
  mkdirSync(objects, { recursive: true });
  await bundleWorker({ folder, sandbox: false, entry });
  const addresses = await Promise.all(Array.from({ length: isolates }, async () => `127.0.0.1:${await freePort()}`));
  writeFileSync(join(folder, 'config.capnp'), configOf(addresses, vars));
  const running = run({ cwd: folder, command: [workerd(), 'serve', 'config.capnp'] });
  const urls = addresses.map((address) => `http://${address}`);
  const isUp = async (url: string) => {
    if (running.hasExited()) throw new Error(running.stderr());
    expect((await call(url, { path: probe })).status).toBe(200);
  };
  await Promise.all(urls.map((url) => vi.waitFor(() => isUp(url), { timeout: 40_000, interval: 25 })));
  const restart = async (otherVars = vars) => {
    await running.kill();
    return serve({ folder, vars: otherVars, isolates, entry, probe });
  };
  return { ...running, urls, objects, restart };
}

const OWN = '(className = "Account")';
const THE_FIRSTS = '(className = "Account", serviceName = "portico-0")';

const moduleOf = (name: string) => `(name = "${name}", esModule = embed "${name}")`;

/** Strings and lists of them are written alike in TOML, JSON and the text form of Cap'n Proto. */
function configOf(addresses: readonly string[], vars: Readonly<Record<string, string>>): string {
  const texts = Object.entries(vars).map(
    ([name, value]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(value)})`,
  );
  // The objects live with the first; the others ask it for them.
  const objects = `durableObjectNamespaces = [(className = "Account", uniqueKey = "portico", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),`;
  const services = addresses.map(
    (_, i) => `(name = "portico-${i}", worker = (
      modules = [${[WORKER_MAIN, WORKER_LATER].map(moduleOf).join(', ')}],
      ${compatibility()}
      bindings = [${[...texts, `(name = "ACCOUNTS", durableObjectNamespace = ${i === 0 ? OWN : THE_FIRSTS})`].join(', ')}],
      ${i === 0 ? objects : ''}
    )),`,
  );
  const sockets = addresses.map(
    (address, i) => `(name = "http-${i}", address = "${address}", http = (), service = "portico-${i}"),`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${services.join('\n    ')}
    (name = "internet", network = (allow = ["public", "private"])),
    (name = "disk", disk = (path = "objects", writable = true)),
  ],
  sockets = [${sockets.join(' ')}],
);
`;
}

/** What `wrangler.toml` asks for. */
export function compatibility(): string {
  const toml = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8');
  const setting = (name: string) => new RegExp(`^${name} = (.+)$`, 'm').exec(toml)?.[1];
  return `compatibilityDate = ${setting('compatibility_date')},
      compatibilityFlags = ${setting('compatibility_flags')},`;
}

/** The program itself, which npm installs with wrangler; it needs no install script. */
export function workerd(): string {
  const ofWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'));
  return (ofWrangler('workerd') as { readonly default: string }).default;
}
