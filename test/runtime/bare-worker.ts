import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { bundleWorker, WORKER_MAIN } from '../../scripts/worker-bundle.ts';
import { call } from '../support/http.ts';
import { emptyFolder, freePort, ROOT, run } from './node-gateway.ts';
import type { WorkerGateway } from './worker-gateway.ts';

/**
 * The worker alone in a workerd, with the compatibility that `wrangler.toml` asks for and nothing before it: it hears
 * of clients that leave as it does when it is deployed. They have to leave with an RST, since to workerd a FIN is only
 * the end of what they say.
 */
export async function startBareWorker(vars: Readonly<Record<string, string>>): Promise<WorkerGateway> {
  const folder = emptyFolder();
  const address = `127.0.0.1:${await freePort()}`;
  await bundleWorker(folder);
  writeFileSync(join(folder, 'config.capnp'), configOf({ address, vars, modules: modulesIn(folder) }));
  const running = run({ cwd: folder, command: [workerd(), 'serve', 'config.capnp'] });
  const url = `http://${address}`;
  await vi.waitFor(
    async () => {
      if (running.hasExited()) throw new Error(running.stderr());
      expect((await call(url, { path: '/livez' })).status).toBe(200);
    },
    { timeout: 15_000, interval: 25 },
  );
  return { ...running, url };
}

/** The first is the one that runs. */
function modulesIn(folder: string): string[] {
  const others = readdirSync(folder).filter((name) => name.endsWith('.js') && name !== WORKER_MAIN);
  return [WORKER_MAIN, ...others];
}

interface BareWorker {
  readonly address: string;
  readonly vars: Readonly<Record<string, string>>;
  readonly modules: readonly string[];
}

/** Strings and lists of them are written alike in TOML, JSON and the text form of Cap'n Proto. */
function configOf({ address, vars, modules }: BareWorker): string {
  const toml = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8');
  const setting = (name: string) => new RegExp(`^${name} = (.+)$`, 'm').exec(toml)?.[1];
  const bindings = Object.entries(vars).map(
    ([name, value]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(value)})`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "portico", worker = (
      modules = [${modules.map((name) => `(name = "${name}", esModule = embed "${name}")`).join(', ')}],
      compatibilityDate = ${setting('compatibility_date')},
      compatibilityFlags = ${setting('compatibility_flags')},
      bindings = [${bindings.join(', ')}],
    )),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "${address}", http = (), service = "portico")],
);
`;
}

/** The program itself, which npm installs with wrangler; it needs no install script. */
function workerd(): string {
  const ofWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'));
  return (ofWrangler('workerd') as { readonly default: string }).default;
}
