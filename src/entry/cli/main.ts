#!/usr/bin/env node
import { clientModuleOf } from './client.ts';
import { obey, type Task } from './words.ts';

const HELP = `portico openapi <file>   prints the OpenAPI document of the app that the file exports as default
portico client <file>    prints types and routes of it for portico-client; needs openapi-typescript
  --path /api/openapi.json   where the app has its document, if its routes do not say

`;

/** Prints what is made of the document of a file's app. */
const printing =
  (make: (document: string) => string | Promise<string>) =>
  (file: string, path?: string): Task =>
  async ({ out }) => {
    const { documentOf } = await import('./document.ts'); // names what an older Node does not have
    out(await make(await documentOf(file, path)));
    return 0;
  };

await obey(process.argv.slice(2), {
  hasSandbox: false,
  help: HELP,
  commands: { openapi: printing((document) => document), client: printing(clientModuleOf) },
});
