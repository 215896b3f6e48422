import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    pool: 'forks',
    isolate: false,
    maxWorkers: 2,
    reporters: process.env['CI'] === undefined ? ['default'] : ['default', 'json'],
    outputFile: { json: 'test-output/results.json' },
    // The worker's tests need no network.
    env: { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/runtime/**', 'test/fleet/**', 'test/logs/**'],
          globalSetup: ['test/runtime/clean.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'runtime',
          include: ['test/runtime/**/*.test.ts'],
          globalSetup: ['test/runtime/clean.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'fleet',
          include: ['test/fleet/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Last, because it reads what the servers of all the others wrote.
        extends: true,
        test: { name: 'logs', include: ['test/logs/**/*.test.ts'], testTimeout: 30_000, sequence: { groupOrder: 3 } },
      },
    ],
  },
});
