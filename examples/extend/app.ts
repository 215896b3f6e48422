import { Hono } from 'hono';
import { defineRows, fromPath, overview, pageOf, portico, type PorticoOptions, resource, text } from 'portico';
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
  subuser: { read: rows.getSubuser, id: fromPath, required: true },
  activity: { read: rows.listProxyActivity, query: { search: fromPath, page_size: 10 } },
});

/** The gateway, mounted in an app with middleware and a call of its own. */
export function appOn(options: Pick<PorticoOptions, 'runtime'>) {
  const gateway = portico({
    ...options,
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
  return { app, gateway };
}
