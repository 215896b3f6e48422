/** Whole microseconds since 1970: the upstream's precision, and still exact in a number. */
export type Instant = number;

export const SECOND = 1_000_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Length of every renewal term, yearly subscriptions included (`upstream-api.md`, Subscription). */
export const TERM = 30 * DAY;

/** ISO 8601 as the upstream writes it: microseconds and a numeric offset, never `Z`. */
export function printInstant(instant: Instant): string {
  const behind = hoursBehindUtc(instant);
  const local = new Date(Math.floor((instant - behind * HOUR) / 1000)).toISOString().slice(0, -1);
  const micros = String(((instant % 1000) + 1000) % 1000).padStart(3, '0');
  return `${local}${micros}-0${behind}:00`;
}

/** Pacific time: -07:00 between the second Sunday of March and the first one of November, else -08:00. */
function hoursBehindUtc(instant: Instant): 7 | 8 {
  const year = new Date(instant / 1000).getUTCFullYear();
  const begins = firstSundayFrom(year, 2, 8) + 10 * HOUR;
  const ends = firstSundayFrom(year, 10, 1) + 9 * HOUR;
  return instant >= begins && instant < ends ? 7 : 8;
}

function firstSundayFrom(year: number, month: number, day: number): Instant {
  const from = Date.UTC(year, month, day);
  return from * 1000 + ((7 - new Date(from).getUTCDay()) % 7) * DAY;
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?(Z|[+ -]\d\d:?\d\d)?)?$/i;

/** Reads a timestamp of a query; `null` when it is none. A `+` that was not encoded arrives as a space. */
export function parseInstant(text: string): Instant | null {
  const parts = ISO.exec(text);
  if (!parts) return null;
  const [, date, minutes = '00:00', seconds = ':00', fraction = '.0', offset = 'Z'] = parts;
  const zone = offset.replace(' ', '+').replace(/^([+-]\d\d)(\d\d)$/, '$1:$2');
  const whole = Date.parse(`${date}T${minutes}${seconds}${zone.toUpperCase()}`);
  return Number.isNaN(whole) ? null : whole * 1000 + Math.floor(Number(`0${fraction}`) * SECOND);
}

const DURATION = /^(?:(\d+) )?(\d\d):(\d\d):(\d\d)$/;

/** Reads `[DD] [HH:MM:SS]`. */
export function parseDuration(text: string): number {
  const [, days = '0', hours = '0', minutes = '0', seconds = '0'] = DURATION.exec(text) ?? [];
  return Number(days) * DAY + Number(hours) * HOUR + Number(minutes) * MINUTE + Number(seconds) * SECOND;
}
