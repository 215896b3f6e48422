import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { ciResults } from './scripts/ci-results.ts';

/** What `.ci/run` reads. */
const results = process.env['CI'] === undefined ? [] : [ciResults('test-output/results')];

/** Ends a test that hangs. None is judged by its time, which on a busy machine is many times the usual. */
const timeout = 60_000;

export default defineConfig({
  // The objects of accounts run in this process too, on a storage of ours; in workerd they run as they are.
  resolve: { alias: { 'cloudflare:workers': join(import.meta.dirname, 'test/support/cloudflare-workers.ts') } },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/full/**'],
    pool: 'forks',
    maxWorkers: 2,
    // Files share their process, so each test has to close what it opens.
    isolate: false,
    reporters: ['default', ...results],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: timeout,
    hookTimeout: timeout,
    // The worker's tests need no network.
    env: { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' },
  },
});
