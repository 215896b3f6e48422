import { directivesOf } from '../core/field-values.ts';

/** The longest that a request may wait for a change, in seconds. */
const MOST_SECONDS = 30;

/** What a client prefers (RFC 7240). The first preference of a name counts; unknown ones are ignored. */
export interface Preferences {
  /** `handling=strict`: any failed section fails the whole. */
  readonly isStrict: boolean;
  /** `changed-sections`: only the sections that have changed. */
  readonly changesOnly: boolean;
  /** `wait`: for how many seconds a change may be waited for; 0 without it. */
  readonly waitSeconds: number;
}

const NONE: Preferences = { isStrict: false, changesOnly: false, waitSeconds: 0 };

export function preferencesOf(prefer: string | undefined): Preferences {
  if (prefer === undefined) return NONE;
  const values = new Map<string, string>();
  for (const [name, value] of directivesOf(prefer.toLowerCase())) if (!values.has(name)) values.set(name, value);
  const wait = values.get('wait') ?? '';
  return {
    isStrict: values.get('handling') === 'strict',
    changesOnly: values.has('changed-sections'),
    waitSeconds: /^\d+$/.test(wait) ? Math.min(MOST_SECONDS, Number(wait)) : 0,
  };
}

/** The header `Preference-Applied`, if any preference was applied. */
export function appliedOf(applied: readonly (string | false)[]): Record<string, string> {
  const names = applied.filter((one) => one !== false);
  return names.length > 0 ? { 'Preference-Applied': names.join(', ') } : {};
}
