import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle, type Plugin } from 'esbuild';
import { replaceFile } from './replace-file.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Of the files below `folder`, what the platform starts. */
export const WORKER_MAIN = 'worker.js';

/** What the worker loads when it is first asked for it: what makes the OpenAPI document, and what speaks with agents. */
export const WORKER_LATER = ['openapi.js', 'mcp-server.js'];

interface WorkerBundle {
  readonly folder: string;
  /** For development; what is deployed is without it. */
  readonly sandbox: boolean;
  /** Of another worker, in tests. */
  readonly entry?: string | undefined;
}

const later: Plugin = {
  name: 'later',
  setup(build) {
    build.onResolve({ filter: /^\.\/[\w-]+\.ts$/ }, ({ kind, path }) => {
      const file = path.slice(2).replace(/ts$/, 'js');
      return kind === 'dynamic-import' && WORKER_LATER.includes(file)
        ? { path: `./${file}`, external: true }
        : undefined;
    });
  },
};

/** Leaves out zod's messages in all other languages, which are half of its size. */
export const onlyEnglish: Plugin = {
  name: 'only English',
  setup(build) {
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    }));
  },
};

/** The worker as the platform takes it. `neutral` knows no modules of Node: an import of one is an error. */
export async function bundleWorker({ folder, sandbox, entry }: WorkerBundle): Promise<void> {
  const { outputFiles } = await bundle({
    absWorkingDir: root,
    entryPoints: [
      { in: entry ?? (sandbox ? 'sandbox/src/worker.ts' : 'src/entry/worker.ts'), out: 'worker' },
      ...WORKER_LATER.map((file) => ({ in: `src/routes/${file.replace(/js$/, 'ts')}`, out: file.replace('.js', '') })),
    ],
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
    plugins: [later, onlyEnglish],
    sourcemap: 'linked',
    legalComments: 'none',
    logLevel: 'warning',
  });
  for (const { path, contents } of outputFiles) await replaceFile(path, contents);
}
