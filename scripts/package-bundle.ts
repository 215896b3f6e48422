import { join } from 'node:path';
import { build as bundle, type BuildOptions, type Plugin } from 'esbuild';
import { packagesIn } from './licenses.ts';
import { partsOfUndici } from './node-bundle.ts';
import { later, WORKER_LATER } from './worker-bundle.ts';

const root = join(import.meta.dirname, '..');

/** By the names of the files that they become. */
const ENTRIES = {
  index: 'src/index.ts',
  'proxy-account': 'src/proxy-account/index.ts',
  node: 'src/entry/node/index.ts',
  worker: 'src/entry/worker/index.ts',
  cli: 'src/entry/cli/main.ts',
};

/** Of the user's, who may have registered a provider with it. */
const OPENTELEMETRY = '@opentelemetry/api';

/** Apps are of the user's Hono: two copies do not know each other. Copies of zod share registry and settings, and its files take 50 ms to load. */
const HONO = ['hono', 'hono/*'];

const common = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  target: 'es2024',
  sourcemap: 'linked',
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
} satisfies BuildOptions;

/** What only Node needs, in a file of its own: what of it is CommonJS wants a `require`, which Workers do not have. */
const FOR_NODE = `
export { getRequestListener } from '@hono/node-server';
export { default } from 'leven';
export { pino } from 'pino';
export { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
export { EnvHttpProxyAgent, interceptors, Pool } from 'undici';
`;

/** What sends traces, which is loaded only where they are wanted. */
const FOR_TRACES = `
export { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
export {
  defaultResource, detectResources, resourceAttributesEnvDetector, resourceFromAttributes, serviceNameEnvDetector,
} from '@opentelemetry/resources';
export {
  AlwaysOffSampler, AlwaysOnSampler, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider,
} from '@opentelemetry/sdk-trace';
`;

/** What makes lines short for people, which is loaded only in a terminal. */
const FOR_PEOPLE = `export { prettyFactory } from 'pino-pretty';`;

const REQUIRE = "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);";

const fromOneFile: Plugin = {
  name: 'packages for Node from one file',
  setup(build) {
    const filter = /^(@hono\/node-server|leven|pino|prom-client|undici)$/;
    build.onResolve({ filter }, () => ({ path: './for-node.js', external: true }));
    const ofTraces = /^@opentelemetry\/(exporter-trace-otlp-http|resources|sdk-trace)$/;
    build.onResolve({ filter: ofTraces }, () => ({ path: './for-traces.js', external: true }));
    build.onResolve({ filter: /^pino-pretty$/ }, () => ({ path: './for-people.js', external: true }));
  },
};

const neutral = {
  ...common,
  platform: 'neutral',
  conditions: ['workerd', 'worker', 'browser'],
  mainFields: ['browser', 'module', 'main'],
  external: [...HONO, OPENTELEMETRY, 'node:*', 'cloudflare:*'],
} satisfies BuildOptions;

/**
 * Modules that all entries share, so that there is one `GatewayError`; with copies of their own, what is loaded late.
 * Returns the names of the packages that are in it.
 */
export async function bundlePackage(folder: string): Promise<readonly string[]> {
  const shared = { splitting: true, chunkNames: '[name]-[hash]', plugins: [fromOneFile, later] };
  const app = await bundle({ ...neutral, ...shared, entryPoints: ENTRIES, outdir: folder });
  const document = await bundle({
    ...neutral,
    entryPoints: ['src/routes/openapi.ts'],
    outfile: join(folder, WORKER_LATER),
  });
  const packages = (name: string, contents: string) =>
    bundle({
      ...common,
      stdin: { contents, resolveDir: root },
      outfile: join(folder, name),
      sourcemap: false,
      platform: 'node',
      banner: { js: REQUIRE },
      external: [...HONO, OPENTELEMETRY],
      plugins: [partsOfUndici],
    });
  const forNode = await packages('for-node.js', FOR_NODE);
  const forTraces = await packages('for-traces.js', FOR_TRACES);
  const forPeople = await packages('for-people.js', FOR_PEOPLE);
  return packagesIn([app, document, forNode, forTraces, forPeople].map(({ metafile }) => metafile));
}
