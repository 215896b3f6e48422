import { join } from 'node:path';
import { build as bundle, type BuildOptions } from 'esbuild';
import { onlyEnglish } from './english.ts';

/** What is CommonJS asks for modules of Node by it. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

const common = {
  absWorkingDir: join(import.meta.dirname, '..'),
  bundle: true,
  platform: 'node',
  target: 'node24',
  sourcemap: 'linked',
  logLevel: 'warning',
} satisfies BuildOptions;

/** The gateway for Node, in chunks: what not every start needs is loaded late. Not minified, so that stacks can be read. */
export async function bundleNode(folder: string): Promise<void> {
  await bundle({
    ...common,
    entryPoints: { portico: 'src/entry/node.ts' },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    format: 'esm',
    splitting: true,
    chunkNames: '[name]-[hash]',
    banner: { js: REQUIRE },
    plugins: [onlyEnglish],
  });
  // The client of a store is asked for at once, so it is no chunk.
  await bundle({
    ...common,
    entryPoints: ['ioredis'],
    outfile: join(folder, 'node_modules/ioredis.js'),
    format: 'cjs',
  });
}
