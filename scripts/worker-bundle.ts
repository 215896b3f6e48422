import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { withoutJsonSchema } from './json-schema-stub.ts';
import { replaceFile } from './replace-file.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Of the files below `folder`, what the platform starts. */
export const WORKER_MAIN = 'worker.js';

/**
 * The worker as it is deployed, and nothing else, into `folder`. What it imports only when it needs it, the sandbox, is a
 * module of its own. `neutral` knows no modules of Node: an import of one is an error.
 */
export async function bundleWorker(folder: string): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [{ in: 'src/entry/worker.ts', out: 'worker' }],
    outdir: folder,
    write: false,
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    mainFields: ['browser', 'module', 'main'],
    external: ['cloudflare:*'],
    sourcemap: 'linked',
    legalComments: 'none',
    plugins: [withoutJsonSchema],
    logLevel: 'warning',
  });
  // What is imported is there before what imports it: a workerd may be watching.
  const files = outputFiles.toSorted((a, b) => Number(isMain(a.path)) - Number(isMain(b.path)));
  for (const { path, contents } of files) await replaceFile(path, contents);
  const made = new Set(files.map(({ path }) => path));
  const stale = (await readdir(folder)).map((name) => join(folder, name)).filter((path) => isOurs(path, made));
  await Promise.all(stale.map((path) => rm(path, { force: true })));
}

const isMain = (path: string) => path.endsWith(`/${WORKER_MAIN}`);

const isOurs = (path: string, made: ReadonlySet<string>) => /\.js(\.map)?$/.test(path) && !made.has(path);
