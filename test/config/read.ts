import type { Config, Variables } from '../../src/config.ts';
import { runtimeOf } from '../../src/entry/node/runtime.ts';
import { type Settings, settingsIn } from '../../src/entry/node/settings.ts';
import { gatherVariables, lineOf } from '../../src/entry/node/variables.ts';
import { checkedConfig } from '../../src/portico.ts';
import { accountTable } from '../support/account-api.ts';

/** All that Node makes of these variables, or what is wrong with them. */
export function read(given: Variables) {
  const gathered = gatherVariables(given);
  const checked = checkedConfig(runtimeOf(gathered), accountTable);
  const settings = settingsIn(gathered.variables);
  return 'config' in checked && 'data' in settings ? { ...checked.config, ...settings.data } : checked;
}

export function readAll(given: Variables): Config & Settings {
  const all = read(given);
  if (!('host' in all)) throw new Error(JSON.stringify(all));
  return all;
}

/** What an operator reads. */
export function linesOf(given: Variables): readonly string[] {
  const all = read(given);
  return 'problems' in all ? all.problems.map(lineOf) : [];
}
