import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { copyConsoleAssets, copyDocsAssets } from './docs-assets.ts';

// What `npm pack` packs: what the compiler makes of the source, and the files of its pages.

const root = join(import.meta.dirname, '..');
const out = join(root, 'dist/package');

await rm(out, { recursive: true, force: true });
const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.package.json'];
execFileSync(process.execPath, tsc, { cwd: root, stdio: 'inherit' });
await Promise.all([copyDocsAssets(out), copyConsoleAssets(out)]);
