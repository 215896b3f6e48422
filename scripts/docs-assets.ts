import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replaceFile } from './replace-file.ts';

const NAMES = ['swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'swagger-ui.css'];

/** The files that the documentation page needs, below `folder` as Workers serves them and Node reads them. */
export async function copyDocsAssets(folder: string): Promise<void> {
  const from = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')));
  for (const name of NAMES) await replaceFile(join(folder, 'assets/docs', name), await readFile(join(from, name)));
}

/** The files of the console, below `folder` as Node reads them. Workers have none. */
export async function copyConsoleAssets(folder: string): Promise<void> {
  const ours = join(import.meta.dirname, '../src/console');
  for (const name of await readdir(ours))
    await replaceFile(join(folder, 'console', name), await readFile(join(ours, name)));
}
