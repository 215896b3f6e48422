import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/** Hono alone on its adapter, whose answers to `/held` never come. Prints its URL. */
const app = new Hono();
app.get('/held', () => new Promise<Response>(() => undefined));

serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(`http://127.0.0.1:${port}`));
