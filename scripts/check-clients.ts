import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { openApiText } from '../src/routes/openapi/document.ts';
import { installIn } from './install.ts';

// Two public generators make types of the document, with the TypeScript that they want; ours compiles what uses them.

const FOLDER = new URL('../test/openapi-clients/', import.meta.url).pathname;
const DOCUMENT = './generated/openapi.json';

const run = (script: string, ...args: string[]) =>
  execFileSync(process.execPath, [script, ...args], { cwd: FOLDER, stdio: 'inherit' });

installIn(FOLDER);
rmSync(`${FOLDER}generated`, { recursive: true, force: true });
mkdirSync(`${FOLDER}generated`);
writeFileSync(`${FOLDER}${DOCUMENT}`, openApiText());
run('node_modules/openapi-typescript/bin/cli.js', DOCUMENT, '-o', 'generated/openapi-typescript.ts');
const onlyTypes = ['--plugins', '@hey-api/typescript', '--no-log-file'];
run('node_modules/@hey-api/openapi-ts/bin/run.js', '-i', DOCUMENT, '-o', 'generated/hey-api', ...onlyTypes);
run('../../node_modules/typescript/bin/tsc', '--project', '.');
console.log('What uses the generated types compiles.');
