import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type Config, parseConfig } from '../../src/config.ts';
import { type Settings, settingsIn } from '../../src/entry/node/settings.ts';
import { NODE_VARIABLES } from '../../src/entry/node/variables.ts';
import { accountTable } from '../support/account-api.ts';

export const ROOT = join(import.meta.dirname, '../..');

export const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** Every YAML document of a file; throws where one is not YAML, or says a key twice. */
export function documentsOf(file: string): unknown[] {
  return parseAllDocuments(textOf(file), { merge: true }).map((document) => {
    const [error] = [...document.errors, ...document.warnings];
    if (error) throw new Error(`${file}: ${error.message}`);
    return document.toJS() as unknown;
  });
}

export const yaml = (file: string): unknown => documentsOf(file)[0];

/** What compose makes of a text when nobody has set a variable. */
export const withDefaults = (text: string): string => text.replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1');

/** Names of variables that the gateway's configuration reads. */
export const variables = new Set([...NODE_VARIABLES, 'NODE_ENV']);

/** As the image starts the gateway: with the Dockerfile's variables under the given ones. */
export function configIn(env: Readonly<Record<string, string>>): Config & Settings {
  const [, ofImage = ''] = /^ENV (.*)$/m.exec(textOf('Dockerfile')) ?? [];
  const pairs = ofImage.split(' ').map((pair) => pair.split('=') as [string, string]);
  const all = { ...Object.fromEntries(pairs), ...env };
  const [parsed, settings] = [parseConfig(all, accountTable), settingsIn(all)];
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
  if ('problems' in settings) throw new Error(JSON.stringify(settings.problems));
  return { ...parsed.config, ...settings.data };
}

/** How long a stop may take, by those variables: the last spans and lines of the log need three seconds at most. */
export const stopMs = ({ shutdownDelayMs, shutdownGraceMs }: Settings & Config): number =>
  shutdownDelayMs + shutdownGraceMs + 3_000;
