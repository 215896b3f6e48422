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

const OF_UPLOT = ['uPlot.iife.min.js', 'uPlot.min.css'];

/** The files of the console, below `folder` as Node reads them. Workers have none. */
export async function copyConsoleAssets(folder: string): Promise<void> {
  const ours = join(import.meta.dirname, '../src/console');
  const uplot = join(dirname(fileURLToPath(import.meta.resolve('uplot/package.json'))), 'dist');
  const names = (await readdir(ours)).filter((name) => !name.endsWith('.d.ts'));
  const files = [...names.map((name) => [ours, name]), ...OF_UPLOT.map((name) => [uplot, name])] as const;
  for (const [from = '', name = ''] of files)
    await replaceFile(join(folder, 'console', name), await readFile(join(from, name)));
}
