import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import manifest from '../package.json' with { type: 'json' };
import { forClient } from '../src/entry/cli/client.ts';
import { openApiText } from '../src/routes/document.ts';
import { accountTables } from '../test/support/account-api.ts';
import { installIn } from './install.ts';

// openapi-typescript makes types of the document, with the TypeScript that it wants; ours compiles what uses them. The client's types are made of it too, and have to be those that are committed. Then the client and the gateway are packed, and
// looked at as others will install them. `--write` writes those types, and that is all: what uses them may have to change before it compiles.

const FOLDER = new URL('../test/full/openapi-clients/', import.meta.url).pathname;
const DOCUMENT = './generated/openapi.json';
const CLIENT_DOCUMENT = './generated/client.json';
const TANSTACK = new URL('../docs/tanstack.md', import.meta.url).pathname;
const CLIENT_TYPES = new URL('../client/src/openapi.ts', import.meta.url).pathname;

const run = (script: string, ...args: string[]) =>
  execFileSync(process.execPath, [script, ...args], { cwd: FOLDER, stdio: 'inherit' });

installIn(FOLDER);
rmSync(`${FOLDER}generated`, { recursive: true, force: true });
mkdirSync(`${FOLDER}generated`);
const text = await openApiText(accountTables);
writeFileSync(`${FOLDER}${DOCUMENT}`, text);
writeFileSync(`${FOLDER}${CLIENT_DOCUMENT}`, JSON.stringify(forClient(text)));

const printer = 'node_modules/openapi-typescript/bin/cli.js';
run(printer, CLIENT_DOCUMENT, '-o', 'generated/client.ts', '--root-types', '--root-types-no-schema-prefix');
const types = readFileSync(`${FOLDER}generated/client.ts`, 'utf8');
if (process.argv.includes('--write')) {
  writeFileSync(CLIENT_TYPES, types);
  console.log('client/src/openapi.ts is what the document says.');
  process.exit();
}
if (readFileSync(CLIENT_TYPES, 'utf8') !== types)
  throw new Error('client/src/openapi.ts is not what the document says: `npm run check:clients -- --write`');

run(printer, DOCUMENT, '-o', 'generated/openapi-typescript.ts');

run('../../../node_modules/typescript/bin/tsc', '--project', '.');
console.log('What uses the generated types compiles.');

const USER = `${FOLDER}generated/user/`;

/** As others will install it: looked at, and unpacked for a user. */
function packed(name: string, ...workspace: string[]): void {
  const pack = ['pack', ...workspace, '--pack-destination', `${FOLDER}generated`, '--loglevel=error'];
  execFileSync('npm', pack, { stdio: 'inherit' });
  const file = `generated/${name}-${manifest.version}.tgz`;
  run('node_modules/publint/src/cli.js', file, '--strict');
  run('node_modules/@arethetypeswrong/cli/dist/index.js', file, '--profile', 'esm-only', '--no-color');
  const folder = `${USER}node_modules/${name}`;
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['xzf', `${FOLDER}${file}`, '--strip-components=1', '-C', folder]);
}

packed('portico-client', '--workspace', 'client');
packed('portico');

// An app with an endpoint of its own, and the module that its client's users get.
cpSync(new URL('../test/full/package/app', import.meta.url), USER, { recursive: true });
cpSync(`${FOLDER}user/use.ts`, `${USER}use.ts`);
// The page on TanStack Query, with its hooks typed by the core of it.
const [, page = ''] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(TANSTACK, 'utf8')) ?? [];
if (!page.includes('useQuery(')) throw new Error(`${TANSTACK} has no page of code`);
writeFileSync(`${USER}tanstack.ts`, page);
const HOOKS = `${USER}node_modules/@tanstack/react-query/`;
mkdirSync(HOOKS, { recursive: true });
cpSync(`${FOLDER}user/react-query.d.ts`, `${HOOKS}index.d.ts`);
writeFileSync(`${HOOKS}package.json`, '{"type":"module","exports":{".":{"types":"./index.d.ts"}}}');
const ASK = `const { default: app } = await import('./node.ts');
const document = await app.request('/openapi.json');
await (await import('node:fs/promises')).writeFile('openapi.json', await document.text());
process.exit();`;
const env = { ...process.env, UPSTREAM_BASE_URL: 'http://upstream.invalid', PORT: '0', ADMIN_PORT: '0' };
execFileSync(process.execPath, ['--input-type=module', '-e', ASK], { cwd: USER, env });
const cli = ['node_modules/portico/dist/package/entry/cli/main.js', 'client', 'openapi.json'];
writeFileSync(`${USER}gateway.ts`, execFileSync(process.execPath, cli, { cwd: USER }));
for (const project of ['user', 'user/tanstack.json', 'user/printed.json'])
  run('../../../node_modules/typescript/bin/tsc', '--project', project);
console.log('What `portico client` prints compiles, and types the client.');
