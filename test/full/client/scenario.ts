import {
  createClient,
  each,
  outcomeOf,
  type Portico,
  PorticoProblem,
  streamOverview,
  watchOverview,
} from '../../../client/src/index.ts';

// Runs in Node, in workerd and in a browser: nothing in it is of one of them alone.

interface Where {
  /** Of the gateway; empty in a page of its own origin. */
  readonly url: string;
  readonly token: string;
  /** Keeps the cookie of a session, where that is not the browser's affair. */
  readonly fetch?: typeof fetch;
}

const PLAN = { proxy_type: 'shared', proxy_countries: { US: 5 }, term: 'monthly' } as const;

/** What all that the client does comes to, as JSON. */
export async function reportOf(where: Where) {
  const { url, token, fetch } = where;
  const portico = createClient({ url, token });
  const page = createClient({ url, fetch });
  return {
    session: await session(page, token),
    overview: await overview(portico),
    stream: await stream(portico),
    watch: await watch(portico),
    paging: await paging(portico),
    problems: await problems(portico),
    abort: await abort(portico),
    purchase: await purchase(portico),
  };
}

export type Report = Awaited<ReturnType<typeof reportOf>>;

/** A sign-in, a read and a write by cookie, and a sign-out. */
async function session(page: Portico, token: string) {
  const before = await page.getSession();
  const begun = await page.createSession({ token });
  const state = await page.getSession();
  const { plan } = await page.getSubscription();
  const { mode } = await page.updateReferralConfig({ mode: 'credits' });
  const ended = await page.deleteSession();
  const after = await page.getSession();
  const isSame = state.authenticated && state.account === begun.account;
  return {
    before,
    isSame,
    plan,
    mode,
    ended: ended === undefined,
    after,
    refused: await codeOf(page.getSubscription()),
  };
}

async function overview(portico: Portico) {
  const fields = { subscription: ['id', 'plan'], payment_method: ['last4'] } as const;
  const { data, errors, meta } = await portico.getAccountOverview({
    sections: ['subscription', 'payment_method'],
    fields,
  });
  return { data, errors, complete: meta.complete, sections: Object.keys(meta.sections) };
}

async function stream(portico: Portico) {
  const sections: string[] = [];
  for await (const line of streamOverview(portico, 'getBillingOverview'))
    sections.push('error' in line ? line.error.code : line.section);
  for await (const _ of streamOverview(portico, 'getAccountOverview')) break;
  return sections.toSorted();
}

/** The first value, and a loop that is left. */
async function watch(portico: Portico) {
  for await (const { data } of watchOverview(portico, 'billing-overview')) return Object.keys(data).toSorted();
  return [];
}

async function paging(portico: Portico) {
  const ids: number[] = [];
  for await (const { id } of each(portico, 'listTransactions', { page_size: 7 })) ids.push(id);
  return ids;
}

async function problems(portico: Portico) {
  const refused = await problemOf(portico.updateReferralConfig({ mode: 'cash' as 'credits' }));
  const missing = await problemOf(portico.getTransaction({ id: 1 }));
  const nobody = createClient({ url: 'http://127.0.0.1:2', token: 'a' });
  const unsent = await problemOf(nobody.updateReferralConfig({ mode: 'credits' }));
  return {
    refused: [refused.code, refused.status, Object.keys(refused.errors), refused.requestId !== ''],
    missing: [missing.code, missing.status, missing.problem.instance, missing instanceof Error],
    unsent: [unsent.code, unsent.status, unsent.outcome],
  };
}

async function abort(portico: Portico) {
  const before = await thrownBy(portico.getSubscription(undefined, { signal: AbortSignal.abort('gone') }));
  const controller = new AbortController();
  const under = thrownBy(portico.getSubscription(undefined, { signal: controller.signal, fresh: true }));
  controller.abort('left');
  return [before, await under];
}

/** A double click, and what became of it. */
async function purchase(portico: Portico) {
  const before = await portico.getBillingOverview({ sections: ['subscription', 'pending_payments'] });
  const [first, second] = await Promise.all([portico.purchasePlan(PLAN), portico.purchasePlan(PLAN)]);
  const { state, subscription } = await outcomeOf(portico, before.data);
  return {
    isOne: first.plan === second.plan,
    isNew: first.plan !== before.data.subscription.plan,
    state,
    same: subscription.plan === first.plan,
  };
}

async function thrownBy(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
    return 'nothing';
  } catch (error) {
    return error;
  }
}

async function problemOf(call: Promise<unknown>): Promise<PorticoProblem> {
  const error = await thrownBy(call);
  if (error instanceof PorticoProblem) return error;
  throw new Error(`no problem was thrown, but ${String(error)}`);
}

const codeOf = async (call: Promise<unknown>) => (await problemOf(call)).code;

/** A `fetch` with the cookie of one origin, and what a browser says of who asks. */
export function cookieFetch(): typeof fetch {
  let cookie: string | undefined;
  return async (address, options) => {
    const headers = new Headers(options?.headers);
    headers.set('Sec-Fetch-Site', 'same-origin');
    if (cookie !== undefined) headers.set('Cookie', cookie);
    const response = await fetch(address, { ...options, headers });
    const [set] = response.headers.getSetCookie();
    const [pair = '', value] = /^[^=]+=([^;]*)/.exec(set ?? '') ?? [];
    if (set !== undefined) cookie = value ? pair : undefined;
    return response;
  };
}
