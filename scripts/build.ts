import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replaceFile } from './replace-file.ts';
import { bundleNode } from './node-bundle.ts';
import { bundleWorker } from './worker-bundle.ts';

const out = 'dist';
const docsAssets = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** The two files that the documentation page needs: beside the Node bundle, and where Workers serves assets from. */
async function copyDocsAssets(): Promise<void> {
  const from = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')));
  const folders = [join(out, 'swagger-ui'), join(out, 'assets', 'docs')];
  for (const name of docsAssets) {
    const contents = await readFile(join(from, name));
    await Promise.all(folders.map((folder) => replaceFile(join(folder, name), contents)));
  }
}

const isOnlyWorker = process.argv.includes('--worker');

if (!isOnlyWorker) {
  await rm(out, { recursive: true, force: true });
  await bundleNode(out);
}
// Said by wrangler, for which this is the build of wrangler.toml.
const sandbox = process.env['WRANGLER_COMMAND'] === 'dev';
await bundleWorker({ folder: resolve(out, 'worker'), sandbox });
await copyDocsAssets();
