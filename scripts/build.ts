import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { openApiText } from '../src/routes/openapi/document.ts';
import { replaceFile } from './replace-file.ts';
import { bundleWorker } from './worker-bundle.ts';

const out = 'dist';
const docsAssets = ['swagger-ui-bundle.js', 'swagger-ui.css'];

// CommonJS dependencies (pino among them) call require() for Node's own modules, which an ES module has to be given.
const banner = `import { createRequire as portico_createRequire } from 'node:module';
const require = portico_createRequire(import.meta.url);`;

async function bundleNode(): Promise<void> {
  await build({
    entryPoints: ['src/entry/node.ts'],
    outfile: join(out, 'portico.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    sourcemap: 'linked',
    legalComments: 'none',
    banner: { js: banner },
    logLevel: 'info',
  });
}

/** The two files that the documentation page needs: beside the Node bundle, and where Workers serves assets from. */
async function copyDocsAssets(): Promise<void> {
  const from = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')));
  const folders = [join(out, 'swagger-ui'), join(out, 'assets', 'docs')];
  for (const name of docsAssets) {
    const contents = await readFile(join(from, name));
    await Promise.all(folders.map((folder) => replaceFile(join(folder, name), contents)));
  }
}

/** What Node makes when it is asked for it; the worker has no code for that. */
async function writeDocument(): Promise<void> {
  await replaceFile(join(out, 'assets', 'openapi.json'), new TextEncoder().encode(openApiText()));
}

const isOnlyWorker = process.argv.includes('--worker');

if (!isOnlyWorker) {
  await rm(out, { recursive: true, force: true });
  await bundleNode();
}
// Said by wrangler, for which this is the build of wrangler.toml.
const sandbox = process.env['WRANGLER_COMMAND'] === 'dev';
await bundleWorker({ folder: resolve(out, 'worker'), sandbox });
await copyDocsAssets();
await writeDocument();
