/** The longest that a request may wait for a change, in seconds. */
const MOST_SECONDS = 30;

/** What a client prefers (RFC 7240). Of two of a name the first counts; what is not known is ignored. */
export interface Preferences {
  /** `handling=strict`: any failed section fails the whole. */
  readonly isStrict: boolean;
  /** `changed-sections`: those alone. */
  readonly changesOnly: boolean;
  /** `wait`: for how long a change may be waited for, in seconds; 0 without one. */
  readonly waitSeconds: number;
}

const NONE: Preferences = { isStrict: false, changesOnly: false, waitSeconds: 0 };

export function preferencesOf(prefer: string | undefined): Preferences {
  if (prefer === undefined) return NONE;
  const values = new Map<string, string>();
  for (const one of prefer.toLowerCase().split(/[,;]/)) {
    const [name = '', value = ''] = one.split('=').map((part) => part.trim());
    if (!values.has(name)) values.set(name, value.replaceAll('"', ''));
  }
  const wait = values.get('wait') ?? '';
  return {
    isStrict: values.get('handling') === 'strict',
    changesOnly: values.has('changed-sections'),
    waitSeconds: /^\d{1,9}$/.test(wait) ? Math.min(MOST_SECONDS, Number(wait)) : 0,
  };
}

/** `Preference-Applied`, where any was. */
export function appliedOf(applied: readonly (string | false)[]): Record<string, string> {
  const names = applied.filter((one) => one !== false);
  return names.length > 0 ? { 'Preference-Applied': names.join(', ') } : {};
}
