#!/usr/bin/env node
import { parseArgs } from 'node:util';
import manifest from '../../../package.json' with { type: 'json' };
import { clientModuleOf } from './client.ts';

const HELP = `portico openapi <file>   prints the OpenAPI document of the app that the file exports as default
portico client <file>    prints types and routes of it for portico-client; needs openapi-typescript

  --path /api/openapi.json   where the app has its document, if its routes do not say
  --version
  --help
`;

const OPTIONS = {
  path: { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** @throws Error in words with an older one */
function checkNode(): void {
  const [needed, { node }] = [manifest.engines.node.replace('>=', ''), process.versions];
  if (node.localeCompare(needed, 'en', { numeric: true }) < 0)
    throw new Error(`portico needs Node ${needed} or newer; this is ${node}`);
}

/** What is to be printed. @throws Error in words */
async function answerTo(args: readonly string[]): Promise<string> {
  checkNode();
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const [command, file, ...rest] = positionals;
  if (values.version) return `${manifest.version}\n`;
  if (values.help || command === undefined) return HELP;
  if (command !== 'openapi' && command !== 'client')
    throw new Error(`there is no command ${command}; --help names all`);
  if (file === undefined || rest.length > 0) throw new Error(`portico ${command} takes one file`);
  const { documentOf } = await import('./document.ts'); // names what an older Node does not have
  const text = await documentOf(file, values.path);
  return command === 'openapi' ? text : clientModuleOf(text);
}

/** The app's own words go to stderr. What it has started ends with the process. */
const print = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

try {
  const text = await answerTo(process.argv.slice(2));
  print(text, () => process.exit(0));
} catch (error) {
  console.error(`portico: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
