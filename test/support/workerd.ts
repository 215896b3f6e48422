import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { bundleWorker, WORKER_LATER, WORKER_MAIN } from '../../scripts/worker-bundle.ts';
import { killAtExit } from './at-exit.ts';
import { call } from './http.ts';
import type { Env } from './gateway.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENTRY = 'test/support/worker-with-time.ts';

/** A worker in a workerd of its own, with the compatibility that `wrangler.toml` asks for and nothing before it. */
export interface Workerd {
  readonly url: string;
  /** One for each isolate. They have nothing in common but the objects of the accounts, which live with the first. */
  readonly urls: readonly string[];
  /** Where the objects have their files. */
  readonly objects: string;
  /** Moves its time of day. No timer runs sooner for it. */
  readonly pass: (seconds: number) => Promise<void>;
  /** What it has printed. */
  readonly output: () => string;
  readonly kill: () => Promise<void>;
  /** The process gone with SIGKILL, and another one with the same objects. */
  readonly restart: (variables?: Env) => Promise<Workerd>;
}

const bundled = new Map<string, Promise<string>>();

async function bundleOf(entry: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'portico-worker-'));
  await bundleWorker({ folder, sandbox: false, entry });
  return folder;
}

/** Made once for all that one process of tests starts. */
function bundle(entry: string): Promise<string> {
  const making = bundled.get(entry) ?? bundleOf(entry);
  bundled.set(entry, making);
  return making;
}

interface Options {
  /** The module of another worker, whose time of day nobody moves. */
  readonly entry?: string;
  readonly isolates?: number;
}

export async function startWorkerd(variables: Env, { entry = ENTRY, isolates = 1 }: Options = {}): Promise<Workerd> {
  const folder = await bundle(entry);
  return serve({ folder, objects: mkdtempSync(join(folder, 'objects-')), variables, isolates });
}

interface Served {
  readonly folder: string;
  readonly objects: string;
  readonly variables: Env;
  readonly isolates: number;
}

async function serve(served: Served): Promise<Workerd> {
  const { folder, objects, isolates } = served;
  const config = `${mkdtempSync(join(folder, 'run-'))}.capnp`;
  writeFileSync(config, configOf(served));
  const child = spawn(workerd(), ['serve', config, '--control-fd=3'], { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
  const end = () => void child.kill('SIGKILL');
  const forget = killAtExit(end);
  const printed: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => printed.push(text));
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  const urls = await Promise.race([listening(child.stdio[3] as Readable, isolates), exited]);
  const [url] = urls ?? [];
  if (!urls || url === undefined) throw new Error(printed.join(''));
  const kill = async () => {
    end();
    await exited;
    forget();
  };
  return {
    url,
    urls,
    objects,
    async pass(seconds) {
      for (const one of urls) await call(one, { path: `/pass/${Math.round(seconds * 1000)}` });
    },
    output: () => printed.join(''),
    kill,
    async restart(variables = served.variables) {
      await kill();
      return serve({ ...served, variables });
    },
  };
}

/** Where they listen, as they say themselves. */
async function listening(control: Readable, isolates: number): Promise<readonly string[] | undefined> {
  const ports: number[] = [];
  for await (const line of createInterface({ input: control })) {
    const said = JSON.parse(line) as { readonly event: string; readonly socket?: string; readonly port: number };
    if (said.event !== 'listen') continue;
    ports[Number(said.socket?.split('-')[1])] = said.port;
    if (Object.keys(ports).length === isolates) return ports.map((port) => `http://127.0.0.1:${port}`);
  }
  return undefined;
}

/** Strings are written alike in JSON and the text form of Cap'n Proto, and lists of them in TOML too. */
function configOf({ variables, objects, isolates }: Served): string {
  const texts = Object.entries(variables).map(
    ([name, value]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(value)})`,
  );
  const modules = [WORKER_MAIN, ...WORKER_LATER].map((name) => `(name = "${name}", esModule = embed "${name}")`);
  const all = Array.from({ length: isolates }, (_, i) => i);
  const services = all.map(
    (i) => `(name = "portico-${i}", worker = (
      modules = [${modules.join(', ')}],
      ${compatibility()}
      bindings = [${[...texts, `(name = "ACCOUNTS", durableObjectNamespace = (className = "Account"${i === 0 ? '' : ', serviceName = "portico-0"'}))`].join(', ')}],
      ${i === 0 ? 'durableObjectNamespaces = [(className = "Account", uniqueKey = "portico", enableSql = true)], durableObjectStorage = (localDisk = "disk"),' : ''}
    )),`,
  );
  const sockets = all.map((i) => `(name = "http-${i}", address = "127.0.0.1:0", http = (), service = "portico-${i}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${services.join('\n    ')}
    (name = "internet", network = (allow = ["public", "private"])),
    (name = "disk", disk = (path = ${JSON.stringify(objects)}, writable = true)),
  ],
  sockets = [${sockets.join(', ')}],
);
`;
}

const COMPLAINT =
  /different request|cannot perform i\/o|uncaught|unhandled|never generate a response|hung|exception|segfault|kj\/|workerd\/.*: (?:error|warning)/i;

/** What workerd has said beside the lines of our log: of promises and I/O of other requests, of errors. */
export const complaintsIn = ({ output }: Pick<Workerd, 'output'>): readonly string[] =>
  output()
    .split('\n')
    .filter((line) => !line.includes('{"level":"') && COMPLAINT.test(line));

/** What `wrangler.toml` asks for. */
function compatibility(): string {
  const toml = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8');
  const setting = (name: string) => new RegExp(`^${name} = (.+)$`, 'm').exec(toml)?.[1];
  return `compatibilityDate = ${setting('compatibility_date')}, compatibilityFlags = ${setting('compatibility_flags')},`;
}

/** The program itself, which npm installs with wrangler; it needs no install script. */
function workerd(): string {
  const ofWrangler = createRequire(createRequire(import.meta.url).resolve('wrangler/package.json'));
  return (ofWrangler('workerd') as { readonly default: string }).default;
}
