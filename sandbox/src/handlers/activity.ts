import { activityBetween, projectedBetween, type Activity } from '../activity.ts';
import { ok, planOf, type Answer, type Call } from '../call.ts';
import { Refusal, refused } from '../errors.ts';
import { pageSize, withParameter } from '../list.ts';
import { DAY, parseInstant, printInstant, type Instant } from '../time.ts';

const OLDEST = 90 * DAY;
const USUAL_WINDOW = 6 * DAY;

/** Newest first. `starting_after` is the last record of the page before; there is no `previous`. */
export function listActivity(call: Call): Answer {
  const { query, url } = call;
  const found = recordsOf(call, windowOf(call)).filter(filterOf(query));
  const cursor = instantOf(query, 'starting_after') ?? Number.POSITIVE_INFINITY;
  const rest = found.filter(({ timestamp }) => timestamp < cursor);
  const results = rest.slice(0, pageSize(query));
  const last = rest.length > results.length ? results.at(-1) : undefined;
  const next = last ? withParameter(url, 'starting_after', printInstant(last.timestamp)) : null;
  return ok({ count: found.length, next, results });
}

function windowOf({ account, now, query }: Call) {
  const until = instantOf(query, 'timestamp__lte') ?? now;
  const from = instantOf(query, 'timestamp__gte') ?? now - USUAL_WINDOW;
  if (until > Math.max(now, account.subscription.end_date)) {
    throw refused('timestamp__lte cannot be after the end of the subscription.', 'timestamp_after_end_date');
  }
  // "90 days from today": the whole of that day is still in.
  if (from < now - OLDEST - (now % DAY)) {
    throw refused('timestamp__gte cannot be older than 90 days.', 'timestamp_too_old');
  }
  if (from >= until) throw refused('timestamp__gte must be before timestamp__lte.', 'invalid_range');
  return { from, until };
}

function instantOf(query: URLSearchParams, name: string): Instant | null {
  const text = query.get(name);
  return text === null ? null : parseInstant(text);
}

/** Only an account with sub-users uses its proxies. */
function recordsOf(call: Call, { from, until }: ReturnType<typeof windowOf>): Activity[] {
  const { account, now } = call;
  const { startedAt, endedAt } = planOf(call);
  if (account.subusers.length === 0) return [];
  const past = activityBetween(Math.max(from, startedAt), Math.min(until, endedAt ?? until, now));
  return endedAt === null ? [...projectedBetween(now, until), ...past] : past;
}

function filterOf(query: URLSearchParams): (activity: Activity) => boolean {
  const least = bytesOf(query, 'bytes__gte') ?? 0;
  const most = bytesOf(query, 'bytes__lte') ?? Number.POSITIVE_INFINITY;
  const search = query.get('search')?.toLowerCase() ?? '';
  const reason = query.get('error_reason') ?? '';
  const category = query.get('verification_category') ?? '';
  return (activity) =>
    activity.bytes >= least &&
    activity.bytes <= most &&
    Object.values(activity).some((value) => typeof value === 'string' && value.toLowerCase().includes(search)) &&
    (reason === '' || activity.error_reason === reason || (reason === '*' && activity.error_reason !== null)) &&
    (category === '' || activity.category === category);
}

/** The refusal is a bare JSON string. */
function bytesOf(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (!text) return null;
  if (!/^\d+$/.test(text)) throw new Refusal(400, `${name} must be a number of bytes.`);
  return Number(text);
}
