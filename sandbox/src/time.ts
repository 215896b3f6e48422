/** Milliseconds since 1970. */
export type Instant = number;

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Length of every renewal term, yearly subscriptions included (`upstream-api.md`, Subscription). */
export const TERM = 30 * DAY;

/** Not 0, so that a client that drops microseconds is noticed. */
const MICROSECONDS = '337';

const PACIFIC = new Intl.DateTimeFormat('en', { timeZone: 'America/Los_Angeles', timeZoneName: 'longOffset' });

/** ISO 8601 as the upstream writes it: Pacific time with microseconds and a numeric offset, never `Z`. */
export function printInstant(instant: Instant): string {
  const offset = PACIFIC.format(instant).slice(-'-07:00'.length);
  const local = new Date(instant + Number.parseInt(offset, 10) * HOUR).toISOString();
  return local.replace('Z', MICROSECONDS + offset);
}

/** Reads a timestamp of a query. A `+` that was not encoded arrives as a space. */
export const parseInstant = (text: string): Instant => Date.parse(text.replace(/(T.*) /, '$1+'));

/** Reads a duration such as `7 00:00:00`; those of the sandbox are whole days. */
export const parseDays = (text: string): number => Number.parseInt(text, 10) * DAY;
