import { Hono } from 'hono';
import {
  defineRows,
  fromPath,
  GatewayError,
  overview,
  pageOf,
  portico,
  type PorticoOptions,
  resource,
  text,
} from 'portico';
import { accountOverview, proxyAccount } from 'portico/proxy-account';

const badge = resource('Badge', { title: text('what it says', 'Early bird') });

export const rows = defineRows({
  ...proxyAccount,
  listBadges: {
    at: 'GET /api/v2/badge/',
    ...pageOf(badge),
    group: 'badges',
    cache: { fresh: 30, stale: 60, onError: 3600 },
    summary: 'List badges',
  },
});

const inbox = overview(
  '/bff/v1/inbox-overview',
  { notifications: { read: rows.listNotifications, required: true }, badges: { read: rows.listBadges } },
  ({ notifications, badges }) => ({ unread: notifications.count, latest_badge: badges?.results[0] ?? null }),
);

const subuser = overview('/bff/v1/subuser-overview/:id', {
  subuser: { read: rows.getSubuser, params: { id: fromPath('id') }, required: true },
  activity: { read: rows.listProxyActivity, query: { search: fromPath('id') } },
});

export function appOn(options: Pick<PorticoOptions, 'runtime'>) {
  const gateway = portico({ ...options, rows, overviews: [accountOverview, inbox, subuser] });
  const app = new Hono()
    .use(async (c, next) => {
      await next();
      c.header('X-Host', 'the host');
    })
    .get('/own/latest', gateway.request, async (c) => {
      const badges = await c.var.portico.read(rows.listBadges);
      return c.json({ title: badges.json().results[0]?.title ?? null });
    })
    .get('/own/caught', gateway.request, async (c) => {
      try {
        return c.json({ plan: (await c.var.portico.read(rows.getSubscription)).json().plan });
      } catch (error) {
        return c.json({ caught: error instanceof GatewayError ? error.code : 'another class' });
      }
    })
    .get('/own/same-hono', (c) => c.json(gateway.app instanceof Hono))
    .route('/', gateway.app)
    .route('/under/here', gateway.app);
  return { app, gateway };
}
