import { copyFile, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

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
  for (const folder of [join(out, 'swagger-ui'), join(out, 'assets', 'docs')]) {
    await mkdir(folder, { recursive: true });
    await Promise.all(docsAssets.map((name) => copyFile(join(from, name), join(folder, name))));
  }
}

if (process.argv.includes('--assets')) {
  await copyDocsAssets();
} else {
  await rm(out, { recursive: true, force: true });
  await bundleNode();
  await copyDocsAssets();
}
