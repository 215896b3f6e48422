import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { ciResults } from './scripts/ci-results.ts';

const isCi = process.env['CI'] !== undefined;

/** Tests that start processes, Redis or workerd. In the other projects an attempt to is an error. */
const WITH_SERVERS = [
  'test/client/readme.test.ts',
  'test/client/runtimes/workerd.test.ts',
  'test/certificates/process.test.ts',
  'test/clients/{bursts,connections,slow,uploads}.test.ts',
  'test/deploy/balancers.test.ts',
  'test/doctor/**/*.test.ts',
  'test/metrics/endpoint.test.ts',
  'test/faults/{memory,workerd}.test.ts',
  'test/fleet/**/*.test.ts',
  'test/runtime/**/*.test.ts',
  'test/property/deltas.test.ts',
  'test/store/redis*.test.ts',
  'test/traces/process.test.ts',
  'test/workers/**/*.test.ts',
];

/** Start processes too, of what `npm pack` packs. */
const PACKED = ['test/package/**/*.test.ts'];

/** Thousands of random schedules and reads: `npm test` makes a tenth of them, with `CI=true` all. */
const RANDOM = ['test/gateway/**/*.test.ts', 'test/property/**/*.test.ts'];

/** Have a config of their own. */
const WITH_BROWSER = ['test/browser/**/*.test.ts'];

/** Reads what the gateways of all the others have logged. */
const LAST = ['test/logs/**/*.test.ts'];

/** What is promised of a gateway holds of one that shares its store too: a part of it by `npm test`, with `CI=true` all. */
const ABOUT_STATE = isCi
  ? ['test/{batch,cache,idempotency,limits,overviews,passthrough,resilience}/**/*.test.ts']
  : ['test/cache/{coalescing,read-your-writes,refusals}.test.ts', 'test/idempotency/{asked,replay,under-way}.test.ts'];

export default defineConfig({
  // The objects of accounts run in this process too, on a storage of ours; in test/runtime they run in workerd.
  resolve: { alias: { 'cloudflare:workers': join(import.meta.dirname, 'test/support/cloudflare-workers.ts') } },
  test: {
    // Packages bring tests of their own, also those that `npm run check:clients` installs below test/.
    exclude: ['**/node_modules/**'],
    pool: 'forks',
    // More than there are cores: the tests with servers mostly wait.
    maxWorkers: 4,
    // Files share their process, so each test has to close what it opens.
    isolate: false,
    reporters: ['default', ...(isCi ? [ciResults('test/unsteady.json', 'test-output/results')] : [])],
    globalSetup: ['test/support/global-setup.ts'],
    // Ends a test that hangs. None is judged by its time, which on a busy machine is many times the usual.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // The worker's tests need no network.
    env: { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
    projects: [
      {
        extends: true,
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [...WITH_SERVERS, ...PACKED, ...WITH_BROWSER, ...RANDOM, ...LAST],
          env: { NO_SERVERS: 'true' },
        },
      },
      {
        extends: true,
        test: {
          name: 'random',
          include: RANDOM,
          exclude: WITH_SERVERS,
          env: { NO_SERVERS: 'true' },
          testTimeout: 600_000,
        },
      },
      {
        extends: true,
        // That one counts the timers of a gateway, of which a store has its own.
        test: {
          name: 'shared',
          include: ABOUT_STATE,
          exclude: ['test/resilience/deadlines.test.ts'],
          env: { NO_SERVERS: 'true', OVER_SHARED_STORE: 'true' },
        },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: WITH_SERVERS,
          globalSetup: ['test/runtime/global-setup.ts'],
          testTimeout: 300_000,
        },
      },
      {
        extends: true,
        test: { name: 'package', include: PACKED, globalSetup: ['test/package/global-setup.ts'], testTimeout: 300_000 },
      },
      {
        extends: true,
        test: { name: 'logs', include: LAST, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
