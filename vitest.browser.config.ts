import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Tests with a browser, which has to be installed; `npm test` needs nothing, and runs none of them. */
export default defineConfig({
  resolve: { alias: { 'cloudflare:workers': join(import.meta.dirname, 'test/support/cloudflare-workers.ts') } },
  test: { include: ['test/browser/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
});
