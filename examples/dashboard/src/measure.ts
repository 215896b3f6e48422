/** A request as the browser saw it, in milliseconds from the beginning of the load. */
export interface Bar {
  readonly name: string;
  readonly start: number;
  /** When the first byte of the answer came. */
  readonly firstByte: number;
  readonly end: number;
}

export interface Load {
  readonly bars: readonly Bar[];
  /** When there was something to show. */
  readonly first: number;
  /** When all data was there. */
  readonly all: number;
}

export type Way = 'five' | 'one';

/** Reads from this origin, and tells when something came. */
type Reading = (origin: string, came: () => void) => Promise<unknown>;

/**
 * Neither the browser's copies nor the gateway's: a first visit. From another origin the header costs a preflight, as the key
 * of a page there would.
 */
const cold = { cache: 'no-store', credentials: 'include' } as const;

async function answered(url: string, more: Readonly<Record<string, string>> = {}): Promise<Response> {
  const response = await fetch(url, { ...cold, headers: { 'Cache-Control': 'no-cache', ...more } });
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}`);
  return response;
}

/** As with the upstream itself: four calls at once, and the card as soon as the subscription has named it. */
const byFiveCalls: Reading = async (origin, came) => {
  const read = async (path: string): Promise<unknown> => {
    const body: unknown = await (await answered(`${origin}/api/v2/${path}`)).json();
    came();
    return body;
  };
  const plan = async () => {
    const { payment_method: card } = (await read('subscription/')) as { readonly payment_method: number | null };
    if (card !== null) await read(`payment/method/${card}/`);
  };
  const others = ['payment/method/', 'notification/?dismissed_at__isnull=True', 'referral/config/'];
  await Promise.all([plan(), ...others.map(read)]);
};

/** Line by line, as the page does it. */
const byOneOverview: Reading = async (origin, came) => {
  const { body } = await answered(`${origin}/bff/v1/account-overview`, { Accept: 'application/x-ndjson' });
  await body?.pipeTo(new WritableStream({ write: came }));
};

const readings: Readonly<Record<Way, Reading>> = { five: byFiveCalls, one: byOneOverview };

export async function measure(way: Way, origin = ''): Promise<Load> {
  performance.clearResourceTimings();
  const startedAt = performance.now();
  let first: number | undefined;
  await readings[way](origin, () => (first ??= performance.now() - startedAt));
  const all = performance.now() - startedAt;
  await new Promise((resolve) => setTimeout(resolve, 50)); // the last entry comes a moment later
  return { bars: barsSince(startedAt, origin), first: first ?? all, all };
}

/** What the page reads meanwhile is of another origin. */
function barsSince(startedAt: number, origin: string): Bar[] {
  return (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
    .filter(
      ({ startTime, name }) => startTime >= startedAt && name.startsWith(origin) && /\/(api|bff)\/v\d\//.test(name),
    )
    .map(({ name, startTime, responseStart, responseEnd }) => ({
      name: new URL(name).pathname.replace(/^\/(api\/v2|bff\/v1)/, ''),
      start: startTime - startedAt,
      firstByte: responseStart - startedAt,
      end: responseEnd - startedAt,
    }));
}
