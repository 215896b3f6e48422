import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { openShop } from './shop.ts';

const ROOT = join(import.meta.dirname, '../../..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
/** Where the page of code looks for the gateway, as `npm start` prints it. */
const ADDRESS = 'http://127.0.0.1:8787';

/** As a reader's own project would have it. */
const TSCONFIG = {
  compilerOptions: {
    target: 'ES2022',
    lib: ['ES2022', 'DOM'],
    types: [],
    module: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
  },
  files: ['page.ts'],
};

/** A command that has to end well. Resolves with what it has printed. */
const done = async (cwd: string, ...args: string[]) =>
  (await promisify(execFile)(process.execPath, args, { cwd })).stdout;

/** A project that has installed the client, as it is packed. */
async function openProject(page: string) {
  mkdirSync(join(ROOT, 'test-output'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'test-output/readme-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const installed = join(folder, 'node_modules/portico-client');
  await done(ROOT, TSC, '--project', 'client/tsconfig.build.json', '--outDir', join(installed, 'dist'));
  copyFileSync(join(ROOT, 'client/package.json'), join(installed, 'package.json'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  writeFileSync(join(folder, 'page.ts'), page);
  return folder;
}

test('the page of code in the README compiles, and signs in, shows an overview and buys', async () => {
  const { url, charged } = await openShop();
  const [, page = ''] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(join(ROOT, 'client/README.md'), 'utf8')) ?? [];
  expect(page).toContain(ADDRESS);
  const folder = await openProject(page.replaceAll(ADDRESS, url));
  await done(folder, TSC, '--project', '.');
  const [shown = '', card, bought = ''] = (await done(folder, 'page.js')).split('\n');
  expect([shown, card]).toEqual([expect.stringMatching(/^Plan \d+, until \d{4}-\d{2}-\d{2}/), 'Card 4242']);
  expect(bought).toMatch(/^Bought plan \d+$/);
  const [before, after] = [shown, bought].map((line) => /plan (\d+)/i.exec(line)?.[1]);
  expect([before === after, charged()]).toEqual([false, 1]);
});
