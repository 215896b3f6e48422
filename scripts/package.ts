import { execFileSync } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { copyConsoleAssets, copyDocsAssets, WITH_ASSETS } from './docs-assets.ts';
import { licensesOf } from './licenses.ts';
import { bundlePackage } from './package-bundle.ts';

// What `npm pack` packs: code, types, the files of its pages, and the licenses of what is in it.

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist/package');

/** Only the document's maker names this package, whose types its users would have to install. */
async function withoutGenerator(file: string): Promise<void> {
  const types = await readFile(file, 'utf8');
  const without = types.replace(/^import .* from '@hono\/zod-openapi';$/m, 'type RouteConfig = any;');
  if (without === types) throw new Error(`${file} no longer names @hono/zod-openapi: this step can go`);
  await writeFile(file, without);
}

await rm(out, { recursive: true, force: true });
const packages = await bundlePackage(out);
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.package.json'];
execFileSync(process.execPath, tsc, { cwd: root, stdio: 'inherit' });
await withoutGenerator(join(out, 'types/routes/openapi.d.ts'));
await Promise.all([copyDocsAssets(out), copyConsoleAssets(out)]);
await writeFile(join(out, 'LICENSES.md'), await licensesOf(root, [...packages, ...WITH_ASSETS]));
