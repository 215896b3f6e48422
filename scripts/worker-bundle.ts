import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { replaceFile } from './replace-file.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Of the files below `folder`, what the platform starts. */
export const WORKER_MAIN = 'worker.js';

interface WorkerBundle {
  readonly folder: string;
  /** For development; what is deployed is without it. */
  readonly sandbox: boolean;
  /** Of another worker, in tests. */
  readonly entry?: string | undefined;
}

/** The worker as the platform takes it. `neutral` knows no modules of Node: an import of one is an error. */
export async function bundleWorker({ folder, sandbox, entry }: WorkerBundle): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [{ in: entry ?? (sandbox ? 'sandbox/src/worker.ts' : 'src/entry/worker.ts'), out: 'worker' }],
    outdir: folder,
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    mainFields: ['browser', 'module', 'main'],
    external: ['cloudflare:*'],
    sourcemap: 'linked',
    legalComments: 'none',
    logLevel: 'warning',
  });
  for (const { path, contents } of outputFiles) await replaceFile(path, contents);
}
