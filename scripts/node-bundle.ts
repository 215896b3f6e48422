import { join } from 'node:path';
import { build as bundle, type BuildOptions, type Metafile, type Plugin } from 'esbuild';
import manifest from '../package.json' with { type: 'json' };
import { packagesIn } from './licenses.ts';

const root = join(import.meta.dirname, '..');

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'cjs',
  sourcemap: 'linked',
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
} satisfies BuildOptions;

/** Files that the gateway loads when it needs them, and what they are made of. */
const LATER: Readonly<Record<string, string>> = {
  'sandbox.cjs': 'sandbox/src/node.ts',
  'node_modules/ioredis.js': 'ioredis',
  'openapi.cjs': 'src/routes/openapi.ts',
  'traces.cjs': 'src/entry/node/tracing/sdk.ts',
};

/** What `node` runs, and what that loads where words come after its name. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'portico.cjs': 'src/entry/node.ts',
  'commands.cjs': 'src/entry/cli/gateway.ts',
};

/** An older Node would end with a stack instead. */
const START = `
const needed = '${manifest.engines.node.replace('>=', '')}', isOlder = (a, b) => a.localeCompare(b, 'en', { numeric: true }) < 0;
if (isOlder(process.versions.node, needed)) {
  console.error('Portico needs Node ' + needed + ' or newer. This is ' + process.version + '.');
  process.exit(1);
}
const bundleUrl = require('node:url').pathToFileURL(__filename).href;`;

/**
 * The gateway for Node, and beside it what not every start needs. Not minified, so that stacks can be read.
 * Returns the names of the packages that are in it.
 */
export async function bundleNode(folder: string): Promise<readonly string[]> {
  const metafiles: Metafile[] = [];
  const add = async (
    name: string,
    entry: string,
    options: Pick<BuildOptions, 'banner' | 'define' | 'plugins'> = {},
  ) => {
    const outfile = join(folder, name);
    const { metafile } = await bundle({ ...common, ...options, entryPoints: [entry], outfile });
    metafiles.push(metafile);
  };
  const ofProgram = {
    banner: { js: START },
    define: { 'import.meta.url': 'bundleUrl' },
    plugins: [later, partsOfUndici],
  };
  for (const [name, entry] of Object.entries(LATER)) await add(name, entry);
  for (const [name, entry] of Object.entries(PROGRAMS)) await add(name, entry, ofProgram);
  return packagesIn(metafiles);
}

const later: Plugin = {
  name: 'later',
  setup(build) {
    build.onResolve({ filter: /^\.\/cli\/gateway\.ts$/ }, () => ({ path: './commands.cjs', external: true }));
    build.onResolve({ filter: /\/sandbox\/src\/node\.ts$/ }, () => ({ path: './sandbox.cjs', external: true }));
    build.onResolve({ filter: /^\.\/openapi\.ts$/ }, () => ({ path: './openapi.cjs', external: true }));
    build.onResolve({ filter: /^\.\/sdk\.ts$/ }, () => ({ path: './traces.cjs', external: true }));
  },
};

const PARTS_OF_UNDICI = `
export { default as EnvHttpProxyAgent } from 'undici/lib/dispatcher/env-http-proxy-agent.js';
export { default as Pool } from 'undici/lib/dispatcher/pool.js';
import decompress from 'undici/lib/interceptor/decompress.js';
import connect from 'undici/lib/api/api-connect.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
Dispatcher.prototype.connect = connect; // its index does so
export const interceptors = { decompress };
`;

/** What we use of it: its index loads all, fetch and WebSocket among them, which costs a start 15 ms. */
export const partsOfUndici: Plugin = {
  name: 'parts of undici',
  setup(build) {
    build.onResolve({ filter: /^undici$/ }, ({ path }) => ({ path, namespace: 'parts' }));
    build.onLoad({ filter: /./, namespace: 'parts' }, () => ({ contents: PARTS_OF_UNDICI, resolveDir: root }));
  },
};
