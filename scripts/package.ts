import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { copyDocsAssets } from './docs-assets.ts';
import { bundlePackage } from './package-bundle.ts';

// What `npm pack` packs: code, types, and the files of the documentation page.

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist/package');

await rm(out, { recursive: true, force: true });
await bundlePackage(out);
execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.package.json'], {
  cwd: root,
  stdio: 'inherit',
});
await copyDocsAssets(out);
