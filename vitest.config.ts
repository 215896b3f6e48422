import { defineConfig } from 'vitest/config';

/** Tests that start processes, Redis or workerd. In the other projects an attempt to is an error. */
const WITH_SERVERS = [
  'test/clients/{bursts,slow,uploads}.test.ts',
  'test/metrics/endpoint.test.ts',
  'test/faults/{memory,workerd}.test.ts',
  'test/fleet/**/*.test.ts',
  'test/runtime/**/*.test.ts',
  'test/store/{redis,shared-{clocks,connection,random,roll-call,rotation,sealing}}.test.ts',
];

/** Thousands of random schedules and reads: `npm test` makes a tenth of them, with `CI=true` all. */
const RANDOM = ['test/gateway/**/*.test.ts', 'test/property/**/*.test.ts'];

/** Reads what the gateways of all the others have logged. */
const LAST = ['test/logs/**/*.test.ts'];

export default defineConfig({
  test: {
    pool: 'forks',
    // More than there are cores: the tests with servers mostly wait.
    maxWorkers: 4,
    // Files share their process, so each test has to close what it opens.
    isolate: false,
    reporters: process.env['CI'] === undefined ? ['default'] : ['default', 'json'],
    outputFile: { json: 'test-output/results.json' },
    globalSetup: ['test/support/global-setup.ts'],
    // The worker's tests need no network.
    env: { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
    projects: [
      {
        extends: true,
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [...WITH_SERVERS, ...RANDOM, ...LAST],
          env: { NO_SERVERS: 'true' },
        },
      },
      { extends: true, test: { name: 'random', include: RANDOM, env: { NO_SERVERS: 'true' } } },
      {
        extends: true,
        test: {
          name: 'servers',
          include: WITH_SERVERS,
          globalSetup: ['test/runtime/global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: { name: 'logs', include: LAST, testTimeout: 30_000, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
