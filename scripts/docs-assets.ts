import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replaceFile } from './replace-file.ts';

const NAMES = ['swagger-ui-bundle.js', 'swagger-ui.css'];

/** The two files that the documentation page needs, below `folder` as Workers serves them. On Node they are read from there. */
export async function copyDocsAssets(folder: string): Promise<void> {
  const from = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')));
  for (const name of NAMES) await replaceFile(join(folder, 'assets/docs', name), await readFile(join(from, name)));
}
