import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Tests with a browser, which has to be installed; `npm test` needs nothing, and runs none of them. */
export default defineConfig({
  resolve: { alias: { 'cloudflare:workers': join(import.meta.dirname, 'test/support/cloudflare-workers.ts') } },
  test: {
    include: ['test/browser/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    // Two of them start the example, which builds into one folder.
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
