import { defineConfig, mergeConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** Tests with a browser, of what `npm pack` packs, and of processes that are killed: `npm run test:full` runs them. */
export default mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [], reporters: [] } },
  defineConfig({
    test: {
      include: ['test/full/**/*.test.ts'],
      exclude: ['**/node_modules/**'],
      reporters: ['default'],
      globalSetup: ['test/full/package/global-setup.ts'],
      // Some build into one folder.
      fileParallelism: false,
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 30_000 } },
    },
  }),
);
