import { defineConfig } from 'vitest/config';

/** Tests that start processes, Redis or workerd; a project whose tests do not is told to refuse it. */
const WITH_SERVERS = [
  'test/clients/{bursts,slow,uploads}.test.ts',
  'test/metrics/endpoint.test.ts',
  'test/faults/{memory,workerd}.test.ts',
  'test/fleet/**/*.test.ts',
  'test/runtime/**/*.test.ts',
  'test/store/{redis,shared-{clocks,connection,random,roll-call,rotation,sealing}}.test.ts',
];

/** Thousands of random schedules, reads and stops: `npm test` makes a tenth of them, all of them with `CI=true`. */
const RANDOM = ['test/gateway/**/*.test.ts', 'test/property/**/*.test.ts'];

/** Reads what the servers of all the others wrote. */
const LAST = ['test/logs/**/*.test.ts'];

export default defineConfig({
  test: {
    pool: 'forks',
    // What is slow here waits more than it computes.
    maxWorkers: 4,
    // Files share their process, so what a test opens it closes.
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
      { extends: true, test: { name: 'random', include: RANDOM } },
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
