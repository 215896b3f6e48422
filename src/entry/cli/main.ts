#!/usr/bin/env node
import { clientModuleOf } from './client.ts';
import { obey } from './words.ts';

const HELP = `portico openapi <file>   prints the OpenAPI document of the app that the file exports as default
portico client <file>    prints types and routes of it for portico-client; needs openapi-typescript
  --path /api/openapi.json   where the app has its document, if its routes do not say
portico import <file>    prints rows for the calls of an OpenAPI 3 document; needs yaml if it is no JSON

`;

/** Loaded late, since it names what an older Node does not have. */
const documentOf = async (file: string, path?: string) => (await import('./document.ts')).documentOf(file, path);

await obey(process.argv.slice(2), {
  hasSandbox: false,
  help: HELP,
  printers: {
    openapi: documentOf,
    client: async (file, path) => clientModuleOf(await documentOf(file, path)),
    import: async (file) => (await import('./import.ts')).rowsFrom(file),
  },
});
