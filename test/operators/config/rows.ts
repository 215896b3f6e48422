import type { Config, Variables } from '../../../src/config.ts';
import { runtimeOf } from '../../../src/entry/node/runtime.ts';
import { type Settings, settingsIn } from '../../../src/entry/node/settings.ts';
import { gatherVariables } from '../../../src/entry/node/variables.ts';
import { checkedConfig } from '../../../src/portico.ts';
import { accountTable } from '../../support/account-api.ts';

/** All that Node makes of these variables. */
export function readAll(given: Variables): Config & Settings {
  const gathered = gatherVariables(given);
  const checked = checkedConfig(runtimeOf(gathered), accountTable);
  const settings = settingsIn(gathered.variables);
  if ('config' in checked && 'data' in settings) return { ...checked.config, ...settings.data };
  throw new Error(JSON.stringify(checked));
}

/** Values of one variable. */
export interface Rows {
  readonly variable: string;
  /** Other variables that it needs. */
  readonly beside?: Readonly<Record<string, string>>;
  /** Each with what it means. */
  readonly good: readonly (readonly [value: string, means: unknown])[];
  /** Each with all that is said to be expected. */
  readonly bad: readonly (readonly [value: string, expected: string])[];
  /** Where a meaning is, if not in the field of that name. */
  readonly meaning?: (read: Config & Settings) => unknown;
}

/** The same meaning of each of them, or the same trouble with it. */
export const each = <T>(values: readonly string[], expected: T) => values.map((value) => [value, expected] as const);

const NO_INTEGERS = ['x', '1.5', '1,000', '-1', '+1', '1e3', '0x10', ' 1', '1 ', '1s', '١', '99999999999999999999'];

/** Of a variable that takes integers, with the bounds and what lies just outside. */
export function integers(variable: string, least: number, most: number): Rows {
  const outside = [String(most + 1), ...(least > 0 ? [String(least - 1)] : [])];
  return {
    variable,
    good: [least, least + 1, most - 1, most].map((value) => [String(value), value]),
    bad: each([...NO_INTEGERS, ...outside], `an integer from ${least} to ${most}`),
  };
}
