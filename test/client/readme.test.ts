import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { ROOT, run, killAll, startNode } from '../runtime/node-gateway.ts';

const README = join(ROOT, 'client/README.md');
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

const firstBlock = (markdown: string) => /^```ts\n(.*?)^```$/ms.exec(markdown)?.[1] ?? '';

/** A command that has to end well. Resolves with what it has printed. */
async function done(cwd: string, ...args: string[]) {
  const running = run({ cwd, command: [process.execPath, ...args] });
  const status = await running.exited;
  expect({ status, printed: running.stdout() + running.stderr() }).toMatchObject({ status: 0 });
  return running.stdout();
}

/** A project that has installed the client, as it is packed. */
async function openProject() {
  mkdirSync(join(ROOT, 'test-output'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'test-output/readme-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const installed = join(folder, 'node_modules/portico-client');
  await done(ROOT, TSC, '--project', 'client/tsconfig.build.json', '--outDir', join(installed, 'dist'));
  copyFileSync(join(ROOT, 'client/package.json'), join(installed, 'package.json'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  return folder;
}

afterAll(killAll);

test('the page of code in the README compiles, and signs in, shows an overview and buys', async () => {
  const [gateway, folder] = await Promise.all([startNode({ ADMIN_PORT: '0' }), openProject()]);
  const page = firstBlock(readFileSync(README, 'utf8'));
  expect(page).toContain(ADDRESS);
  writeFileSync(join(folder, 'page.ts'), page.replaceAll(ADDRESS, gateway.url));
  await done(folder, TSC, '--project', '.');
  const lines = (await done(folder, 'page.js')).trimEnd().split('\n');
  expect(lines).toEqual([
    expect.stringMatching(/^Plan \d+, until \d{4}-\d{2}-\d{2}/),
    'Card 4242',
    expect.stringMatching(/^Bought plan \d+$/),
  ]);
  const [shown, bought] = [lines[0], lines[2]].map((line) => /plan (\d+)/i.exec(line ?? '')?.[1]);
  expect(bought).not.toBe(shown);
});
