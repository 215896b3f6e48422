import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { openApiText } from '../src/routes/document.ts';
import { accountTables } from '../test/support/account-api.ts';
import { installIn } from './install.ts';

// Two public generators make types of the document, with the TypeScript that they want; ours compiles what uses them.
// The client's types are made of it too, and have to be those that are committed. Then the client and the gateway are packed, and
// looked at as others will install them. `--write` writes those types, and that is all: what uses them may have to change before it compiles.

const FOLDER = new URL('../test/openapi-clients/', import.meta.url).pathname;
const DOCUMENT = './generated/openapi.json';
const CLIENT_DOCUMENT = './generated/client.json';
const CLIENT_TYPES = new URL('../client/src/openapi.ts', import.meta.url).pathname;

const run = (script: string, ...args: string[]) =>
  execFileSync(process.execPath, [script, ...args], { cwd: FOLDER, stdio: 'inherit' });

interface Call {
  readonly tags?: readonly string[];
  readonly parameters?: readonly { readonly in: string }[];
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Call>>>>;
  readonly components: { readonly schemas: object };
}

/** Less what types do not need: headers, problems as answers, examples, and calls about the gateway itself. */
function forClient(text: string): object {
  const isExample = /^examples?$/;
  const withoutExamples: unknown = JSON.parse(text, (key, value) =>
    isExample.test(key) ? undefined : (value as unknown),
  );
  const { paths, components, ...document } = withoutExamples as Document;
  const calls = Object.entries(paths).filter(([, methods]) => !Object.values(methods)[0]?.tags?.includes('About'));
  return {
    ...document,
    paths: mapped(calls, (methods) => mapped(Object.entries(methods), named)),
    components: { schemas: components.schemas },
  };
}

const named = ({ parameters = [], responses, ...call }: Call) => ({
  ...call,
  parameters: parameters.filter((one) => one.in !== 'header'),
  responses: mapped(
    Object.entries(responses).filter(([status]) => status.startsWith('2')),
    ({ description, content }) => ({ description, ...(content && { content }) }),
  ),
});

const mapped = <T, R>(entries: readonly (readonly [string, T])[], of: (value: T) => R): Record<string, R> =>
  Object.fromEntries(entries.map(([key, value]) => [key, of(value)]));

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
const onlyTypes = ['--plugins', '@hey-api/typescript', '--no-log-file'];
run('node_modules/@hey-api/openapi-ts/bin/run.js', '-i', DOCUMENT, '-o', 'generated/hey-api', ...onlyTypes);
run('../../node_modules/typescript/bin/tsc', '--project', '.');
console.log('What uses the generated types compiles.');

for (const of of [['--workspace', 'client'], []]) {
  const pack = ['pack', ...of, '--json', '--pack-destination', `${FOLDER}generated`, '--loglevel=error'];
  const said = execFileSync('npm', pack, { encoding: 'utf8' });
  const [{ filename }] = JSON.parse(said.slice(said.search(/^\[$/m))) as [{ filename: string }];
  const packed = `generated/${filename}`;
  run('node_modules/publint/src/cli.js', packed, '--strict');
  run('node_modules/@arethetypeswrong/cli/dist/index.js', packed, '--profile', 'esm-only', '--no-color');
}
