// A gateway of your own: an endpoint that the upstream has got since, two overviews, middleware, a call of its own, hooks.
// `npm ci && npm pack` in the root builds the package that it imports. Then, beside `npm run sandbox`:
//   UPSTREAM_BASE_URL=http://127.0.0.1:8789 node examples/extend.ts
//   curl -H 'Authorization: Token sandbox-paid-key' http://127.0.0.1:8787/bff/v1/greeting
// docs/extending.md tells of each part. The section `badges` fails there: the sandbox has no such endpoint.
import { Hono } from 'hono';
import { defineRows, fromPath, overview, pageOf, portico, resource, text } from 'portico';
import { fromEnv, serve } from 'portico/node';
import { accountOverview, proxyAccount } from 'portico/proxy-account';

const badge = resource('Badge', { title: text('what it says', 'Early bird') });

/** The account API, and an endpoint that it has got since. */
const rows = defineRows({
  ...proxyAccount,
  listBadges: {
    at: 'GET /api/v2/badge/',
    ...pageOf(badge),
    group: 'badges',
    cache: { fresh: 30, stale: 60, onError: 3600 },
  },
});

const inbox = overview(
  '/bff/v1/inbox-overview',
  { notifications: { read: rows.listNotifications, required: true }, badges: { read: rows.listBadges } },
  ({ notifications, badges }) => ({ unread: notifications.count, latest_badge: badges?.results[0] ?? null }),
);

const subuser = overview('/bff/v1/subuser-overview/:id', {
  subuser: { read: rows.getSubuser, params: { id: fromPath('id') }, required: true },
  activity: { read: rows.listProxyActivity, query: { search: fromPath('id'), page_size: 10 } },
});

const gateway = portico({
  ...fromEnv(process.env),
  rows,
  overviews: [accountOverview, inbox, subuser],
  onProblem: (problem) => ({ ...problem, help: `https://help.example/${problem.code}` }),
  headers: ({ credential }) => ({ 'X-Partner': 'extend', Authorization: credential && `Token ${credential}` }),
});

const app = new Hono()
  .use(async (c, next) => {
    await next();
    c.header('X-Served-By', 'extend');
  })
  .get('/bff/v1/greeting', gateway.request, async (c) => {
    const subscription = await c.var.portico.read(rows.getSubscription);
    return c.json({ plan: subscription.json().plan });
  })
  .route('/', gateway.app);

export default app;

await serve(app, gateway);
