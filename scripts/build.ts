import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { copyConsoleAssets, copyDocsAssets, WITH_ASSETS } from './docs-assets.ts';
import { licensesOf } from './licenses.ts';
import { bundleNode } from './node-bundle.ts';
import { bundleWorker } from './worker-bundle.ts';

const out = 'dist';

/** `--node` or `--worker` for one of them. */
const [only] = process.argv.slice(2);

if (only !== '--worker') {
  await rm(out, { recursive: true, force: true });
  const packages = await bundleNode(out);
  await copyConsoleAssets(out);
  await writeFile(join(out, 'THIRD-PARTY-LICENSES'), await licensesOf('.', [...packages, ...WITH_ASSETS]));
}
if (only !== '--node') {
  // Said by wrangler, for which this is the build of wrangler.toml.
  const sandbox = process.env['WRANGLER_COMMAND'] === 'dev';
  await bundleWorker({ folder: resolve(out, 'worker'), sandbox });
}
await copyDocsAssets(out);
