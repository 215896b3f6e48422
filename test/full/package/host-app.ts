import { Hono } from 'hono';
import type { Env } from '../../../src/http/request.ts';

/** An app of somebody else's, with the gateway below `/api`. */
export const hostOf = (portico: Hono<Env>) =>
  new Hono()
    .use(async (c, next) => {
      await next();
      c.header('X-Host', 'the host');
    })
    .route('/api', portico)
    .get('/own/:name', (c) => c.text(c.req.param('name')))
    .notFound((c) => c.text('not here', 404));
