import { join } from 'node:path';
import { build as bundle, type BuildOptions, type Plugin } from 'esbuild';

const root = join(import.meta.dirname, '..');

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  legalComments: 'none',
  logLevel: 'warning',
} satisfies BuildOptions;

/** Files that the gateway loads when it needs them, and what they are made of. */
const LATER: Readonly<Record<string, string>> = {
  'sandbox.cjs': 'sandbox/src/node.ts',
  'ioredis.cjs': 'ioredis',
  'openapi.cjs': 'src/routes/openapi.ts',
};

/**
 * The gateway for Node: what starts it, itself, and beside it what not every start needs. Not minified, so that stacks
 * can be read: with a code cache, what is left out by that would not have been read anyway.
 */
export async function bundleNode(folder: string): Promise<void> {
  await bundle({
    ...common,
    entryPoints: ['src/entry/bundled.ts'],
    outfile: join(folder, 'portico.mjs'),
    format: 'esm',
  });
  await bundleGateway(join(folder, 'gateway.cjs'));
  for (const [name, entry] of Object.entries(LATER)) {
    const outfile = join(folder, name);
    await bundle({ ...common, entryPoints: [entry], outfile, format: 'cjs', sourcemap: 'linked' });
  }
}

/** A function of what a module has to be given, for src/entry/node/code-cache.ts. */
async function bundleGateway(outfile: string): Promise<void> {
  await bundle({
    ...common,
    entryPoints: ['src/entry/node.ts'],
    outfile,
    format: 'cjs',
    sourcemap: 'linked',
    banner: { js: '(function (require, bundleUrl) {' },
    footer: { js: '})' },
    define: { 'import.meta.url': 'bundleUrl' },
    supported: { 'dynamic-import': false }, // in favour of require()
    plugins: [later, partsOfUndici, withoutHttp2],
  });
}

const later: Plugin = {
  name: 'later',
  setup(build) {
    build.onResolve({ filter: /^ioredis$/ }, () => ({ path: './ioredis.cjs', external: true }));
    build.onResolve({ filter: /\/sandbox\/src\/node\.ts$/ }, () => ({ path: './sandbox.cjs', external: true }));
    build.onResolve({ filter: /^\.\/openapi\.ts$/ }, () => ({ path: './openapi.cjs', external: true }));
  },
};

const PARTS_OF_UNDICI = `
export { default as Pool } from 'undici/lib/dispatcher/pool.js';
export { default as buildConnector } from 'undici/lib/core/connect.js';
`;

/** Two of its classes: its index loads all, fetch and WebSocket among them. */
const partsOfUndici: Plugin = {
  name: 'parts of undici',
  setup(build) {
    build.onResolve({ filter: /^undici$/ }, ({ path }) => ({ path, namespace: 'parts' }));
    build.onLoad({ filter: /./, namespace: 'parts' }, () => ({ contents: PARTS_OF_UNDICI, resolveDir: root }));
  },
};

/** What undici and node-server ask of it when they are loaded. */
const WITHOUT_HTTP2 = 'exports.constants = {}; exports.Http2ServerRequest = class {};';

/** Nobody here speaks it, and loading it costs a start some milliseconds. */
const withoutHttp2: Plugin = {
  name: 'without HTTP/2',
  setup(build) {
    build.onResolve({ filter: /^(node:)?http2$/ }, ({ path }) => ({ path, namespace: 'http2' }));
    build.onLoad({ filter: /./, namespace: 'http2' }, () => ({ contents: WITHOUT_HTTP2 }));
  },
};
