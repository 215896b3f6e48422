import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { copyConsoleAssets, copyDocsAssets } from './docs-assets.ts';
import { bundleNode } from './node-bundle.ts';
import { bundleWorker } from './worker-bundle.ts';

const out = 'dist';

const isOnlyWorker = process.argv.includes('--worker');

if (!isOnlyWorker) {
  await rm(out, { recursive: true, force: true });
  await bundleNode(out);
  await copyConsoleAssets(out);
}
// Said by wrangler, for which this is the build of wrangler.toml.
const sandbox = process.env['WRANGLER_COMMAND'] === 'dev';
await bundleWorker({ folder: resolve(out, 'worker'), sandbox });
await copyDocsAssets(out);
