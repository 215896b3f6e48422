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
  /** When all data was there. */
  readonly total: number;
}

/** Neither the browser's copies nor the gateway's: a first visit. */
const cold: RequestInit = { cache: 'no-store', headers: { 'Cache-Control': 'no-cache' } };

async function read(path: string): Promise<unknown> {
  const response = await fetch(path, cold);
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}`);
  return response.json();
}

/** As with the upstream itself: four calls at once, and the card as soon as the subscription has named it. */
async function byFiveCalls(): Promise<void> {
  await Promise.all([
    readSubscriptionAndCard(),
    read('/api/v2/payment/method/'),
    read('/api/v2/notification/?dismissed_at__isnull=True'),
    read('/api/v2/referral/config/'),
  ]);
}

async function readSubscriptionAndCard(): Promise<void> {
  const { payment_method: card } = (await read('/api/v2/subscription/')) as { readonly payment_method: number | null };
  if (card !== null) await read(`/api/v2/payment/method/${card}/`);
}

const byOneOverview = () => read('/bff/v1/account-overview');

async function measured(load: () => Promise<unknown>): Promise<Load> {
  performance.clearResourceTimings();
  const startedAt = performance.now();
  await load();
  const total = performance.now() - startedAt;
  await new Promise((resolve) => setTimeout(resolve, 50)); // the last entry comes a moment later
  return { bars: barsSince(startedAt), total };
}

function barsSince(startedAt: number): Bar[] {
  return (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
    .filter(({ startTime, name }) => startTime >= startedAt && /\/(api|bff)\/v\d\//.test(name))
    .map(({ name, startTime, responseStart, responseEnd }) => ({
      name: new URL(name).pathname.replace(/^\/(api\/v2|bff\/v1)/, ''),
      start: startTime - startedAt,
      firstByte: responseStart - startedAt,
      end: responseEnd - startedAt,
    }));
}

/** One after the other, so that neither waits for the other. */
export async function loadBothWays() {
  return { five: await measured(byFiveCalls), one: await measured(byOneOverview) };
}
