import { Hono } from 'hono';
import type { Env } from '../../src/middleware/request.ts';

/** The key of the account that the host does not serve. */
export const BUSY = 'key-of-a-busy-account';

/** An app of somebody else's, with the gateway below `/api`. */
export const hostOf = (portico: Hono<Env>) =>
  new Hono()
    .use(async (c, next) => {
      await next();
      c.header('X-Host', 'the host');
    })
    .use((c, next) =>
      c.req.header('authorization') === `Token ${BUSY}` ? Promise.resolve(c.text('busy', 503)) : next(),
    )
    .route('/api', portico)
    .get('/own/:name', (c) => c.text(c.req.param('name')))
    .notFound((c) => c.text('not here', 404));
