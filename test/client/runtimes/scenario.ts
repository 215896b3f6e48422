import {
  createClient,
  each,
  keepCopies,
  outcomeOf,
  type Portico,
  PorticoProblem,
  readBatch,
  streamOverview,
  watchOverview,
} from '../../../client/src/index.ts';
import { queriesOf } from '../../../client/src/query.ts';

// Runs in Node, in workerd and in a browser: nothing in it is of one of them alone.

interface Where {
  /** Of the gateway; empty in a page of its own origin. */
  readonly url: string;
  readonly token: string;
  /** Of another account. */
  readonly other: string;
  /** Keeps the cookie of a session, where that is not the browser's affair. */
  readonly fetch?: typeof fetch;
}

const PLAN = { proxy_type: 'shared', proxy_countries: { US: 5 }, term: 'monthly' } as const;

const hasHttpCache = () => 'document' in globalThis;

/** What all that the client does comes to, as JSON. */
export async function reportOf(where: Where) {
  const { url, token, fetch } = where;
  const portico = createClient({ url, token, copies: hasHttpCache() ? undefined : keepCopies() });
  const page = createClient({ url, fetch });
  return {
    session: await session(page, token),
    overview: await overview(portico),
    stream: await stream(portico),
    watch: await watch(portico),
    paging: await paging(portico),
    batch: await batch(portico),
    problems: await problems(portico),
    abort: await abort(portico),
    purchase: await purchase(portico),
    query: await query(portico),
    copies: await copies(portico),
    changed: await changed(where),
    foreign: await foreign(where),
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

async function batch(portico: Portico) {
  const { plan, none, cards } = await readBatch(portico, {
    plan: ['getSubscription'],
    none: ['getTransaction', { id: '9223372036854775807' }],
    cards: ['listPaymentMethods', { page_size: 1 }],
  });
  return {
    plan: plan instanceof PorticoProblem ? plan.code : plan.plan,
    none: none instanceof PorticoProblem ? none.code : none.id,
    cards: cards instanceof PorticoProblem ? cards.code : cards.count,
  };
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

async function query(portico: Portico) {
  const { queryKey, queryFn } = queriesOf(portico, 'me').pages('listTransactions', { page_size: 2 });
  const page = await queryFn({ signal: new AbortController().signal, pageParam: 'page=2&page_size=2' });
  return { queryKey, ids: page.results.map(({ id }) => id) };
}

/** Whether a second read says the same, whatever was done to the first. */
async function copies(portico: Portico) {
  const first = await portico.getSubscription();
  const text = JSON.stringify(first);
  first.plan = -1;
  return { isSameText: JSON.stringify(await portico.getSubscription()) === text };
}

/** A purchase that fails while another account signs in: by cookie in another tab, and by key. */
async function changed({ url, token, other, fetch = globalThis.fetch }: Where) {
  const tab = createClient({ url, fetch });
  const buyer = (options: { token?: () => string }, change: () => Promise<unknown>) => {
    let hasFailed = false;
    const failing: typeof fetch = async (address, init) => {
      if (hasFailed || !new Headers(init?.headers).has('Idempotency-Key')) return fetch(address, init);
      hasFailed = true;
      await change();
      return failure(503, { type: '/problems/overloaded', code: 'overloaded', retryable: true });
    };
    return createClient({ url, fetch: failing, ...options });
  };
  const page = buyer({}, () => tab.createSession({ token: other }));
  await page.createSession({ token });
  const byCookie = await codeOf(page.purchasePlan(PLAN));
  await tab.deleteSession();
  let key = token;
  const change = () => Promise.resolve((key = other));
  const byKey = await codeOf(buyer({ token: () => key }, change).purchasePlan(PLAN));
  return { byCookie, byKey };
}

/** A 504 of something in between, twice, and a batch with a read that was answered with 204. */
async function foreign({ url, token }: Where) {
  const keys: unknown[] = [];
  const fetch = (_: unknown, options?: RequestInit) => {
    const key = new Headers(options?.headers).get('Idempotency-Key');
    if (key !== null) keys.push(key);
    const responses = [{ id: 'a', status: 204, body: null }];
    return Promise.resolve(key === null ? Response.json({ responses }) : failure(504, { code: 'timeout' }));
  };
  const portico = createClient({ url, token, fetch });
  const { code, outcome } = await problemOf(portico.purchasePlan(PLAN));
  await problemOf(portico.purchasePlan(PLAN));
  const { a } = await readBatch(portico, { a: ['getSubscription'] });
  return { code, outcome, isSameKey: keys.length === 2 && keys[0] === keys[1], nothing: a as unknown };
}

const failure = (status: number, members: object) =>
  new Response(
    JSON.stringify({ title: '', status, detail: '', instance: '/', request_id: '', errors: [], ...members }),
    {
      status,
      headers: { 'Content-Type': 'application/problem+json' },
    },
  );

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
