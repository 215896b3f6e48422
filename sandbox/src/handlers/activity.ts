import { activityBetween, projectedBetween, type Activity } from '../activity.ts';
import { ok, planOf, type Answer, type Call } from '../call.ts';
import { fieldRefused, refused, refusedAsString } from '../errors.ts';
import { pageSize, withParameter } from '../paging.ts';
import type { ActivityRecord } from '../resources/proxy.ts';
import { DAY, parseInstant, printInstant, type Instant } from '../time.ts';

const OLDEST = 90 * DAY;
const USUAL_WINDOW = 6 * DAY;

interface Window {
  readonly from: Instant;
  readonly until: Instant;
}

/** Newest first. `starting_after` is the last record of the page before; there is no `previous`. */
export function listActivity(call: Call): Answer {
  const { query, url } = call;
  const found = recordsOf(call, windowOf(call)).filter(filterOf(query));
  const rest = after(found, instantParameter(query, 'starting_after'));
  const results = rest.slice(0, pageSize(query)).map(({ record }) => record);
  return ok({ count: found.length, next: nextAfter(url, results, rest.length), results });
}

function windowOf({ account, now, query }: Call): Window {
  const until = instantParameter(query, 'timestamp__lte');
  const from = instantParameter(query, 'timestamp__gte');
  const { end_date: endsAt } = account.subscription;
  if (until !== null && until > endsAt) {
    throw refused('timestamp__lte cannot be after the end of the subscription.', 'timestamp_after_end_date');
  }
  if (from !== null && from < oldestAllowed(now)) {
    throw refused('timestamp__gte cannot be older than 90 days.', 'timestamp_too_old');
  }
  const window = { from: from ?? now - USUAL_WINDOW, until: until ?? now };
  if (window.from >= window.until) throw refused('timestamp__gte must be before timestamp__lte.', 'invalid_range');
  return window;
}

/** "90 days from today": the whole of that day is still in. */
const oldestAllowed = (now: Instant) => Math.floor((now - OLDEST) / DAY) * DAY;

function instantParameter(query: URLSearchParams, name: string): Instant | null {
  const text = query.get(name);
  if (!text) return null;
  const instant = parseInstant(text);
  if (instant === null) throw fieldRefused(name, 'expected an ISO 8601 date-time', 'custom');
  return instant;
}

function recordsOf(call: Call, { from, until }: Window): Activity[] {
  const { account, now } = call;
  if (account.requestInterval === null) return [];
  const { startedAt, endedAt } = planOf(call);
  const past = activityBetween(
    Math.max(from, startedAt),
    Math.min(until, endedAt ?? until, now),
    account.requestInterval,
  );
  return endedAt === null ? [...projectedBetween(now, until), ...past] : past;
}

function filterOf(query: URLSearchParams): (activity: Activity) => boolean {
  const least = bytesParameter(query, 'bytes__gte') ?? 0;
  const most = bytesParameter(query, 'bytes__lte') ?? Number.POSITIVE_INFINITY;
  const search = query.get('search')?.toLowerCase() ?? '';
  const reason = query.get('error_reason') ?? '';
  const category = query.get('verification_category') ?? '';
  return (activity) =>
    activity.record.bytes >= least &&
    activity.record.bytes <= most &&
    mentions(activity.record, search) &&
    hasError(activity.record, reason) &&
    (category === '' || activity.category === category);
}

const mentions = (record: ActivityRecord, search: string) =>
  Object.values(record).some((value) => typeof value === 'string' && value.toLowerCase().includes(search));

/** `*` stands for any error. */
function hasError({ error_reason: actual }: ActivityRecord, wanted: string): boolean {
  if (wanted === '') return true;
  return wanted === '*' ? actual !== null : actual === wanted;
}

function bytesParameter(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (!text) return null;
  if (!/^\d+$/.test(text)) throw refusedAsString(`${name} must be a number of bytes.`);
  return Number(text);
}

const after = (activities: readonly Activity[], cursor: Instant | null) =>
  cursor === null ? activities : activities.filter(({ record }) => record.timestamp < cursor);

function nextAfter(url: URL, results: readonly ActivityRecord[], left: number): string | null {
  const last = results.at(-1);
  if (!last || left <= results.length) return null;
  return withParameter(url, 'starting_after', printInstant(last.timestamp));
}
