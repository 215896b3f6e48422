import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { copyConsoleAssets, copyDocsAssets } from './docs-assets.ts';
import { bundleNode } from './node-bundle.ts';
import { bundleWorker } from './worker-bundle.ts';

const out = 'dist';

/** `--node` or `--worker` for one of them. */
const [only] = process.argv.slice(2);

if (only !== '--worker') {
  await rm(out, { recursive: true, force: true });
  await bundleNode(out);
  await copyConsoleAssets(out);
}
if (only !== '--node') {
  // Said by wrangler, for which this is the build of wrangler.toml.
  const sandbox = process.env['WRANGLER_COMMAND'] === 'dev';
  await bundleWorker({ folder: resolve(out, 'worker'), sandbox });
}
await copyDocsAssets(out);
