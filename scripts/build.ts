import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build as bundle, type BuildOptions } from 'esbuild';
import { copyConsoleAssets, copyDocsAssets } from './docs-assets.ts';
import { bundleWorker, onlyEnglish } from './worker-bundle.ts';

const out = 'dist';

/** `--node` or `--worker` for one of them. */
const [only] = process.argv.slice(2);

/** What is CommonJS asks for modules of Node by it. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

const forNode = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  sourcemap: 'linked',
  logLevel: 'warning',
} satisfies BuildOptions;

/** In chunks: what not every start needs is loaded late. Not minified, so that stacks can be read. */
async function bundleNode(): Promise<void> {
  await bundle({
    ...forNode,
    entryPoints: { portico: 'src/entry/node.ts' },
    outdir: out,
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    splitting: true,
    chunkNames: '[name]-[hash]',
    banner: { js: REQUIRE },
    plugins: [onlyEnglish],
  });
  // `require` loads it, where there is a store.
  const outfile = join(out, 'node_modules/ioredis.js');
  await bundle({ ...forNode, entryPoints: ['ioredis'], outfile, format: 'cjs' });
}

if (only !== '--worker') {
  await rm(out, { recursive: true, force: true });
  await bundleNode();
  await copyConsoleAssets(out);
}
if (only !== '--node') {
  // Said by wrangler, for which this is the build of wrangler.toml.
  const sandbox = process.env['WRANGLER_COMMAND'] === 'dev';
  await bundleWorker({ folder: resolve(out, 'worker'), sandbox });
}
await copyDocsAssets(out);
