#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { clientModuleOf } from './client.ts';
import { obey } from './words.ts';

const HELP = `portico client <file>    prints types and routes for portico-client, of the /openapi.json that a gateway has answered;
                         needs openapi-typescript
portico import <file>    prints rows for the calls of an OpenAPI 3 document; needs yaml if it is no JSON

`;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`portico: it needs Node 22.19 or newer, and this is ${process.versions.node}\n`);
  process.exit(1);
}

await obey(process.argv.slice(2), {
  hasSandbox: false,
  help: HELP,
  printers: {
    client: async (file) => clientModuleOf(await readFile(file, 'utf8')),
    import: async (file) => (await import('./import.ts')).rowsFrom(file),
  },
});
