import { peer } from './peer.ts';

/** Hono with one route: what starts at least where Portico starts. */
interface Context {
  json(value: object): Response;
}

interface App {
  get(path: string, handler: (context: Context) => Response): void;
  readonly fetch: (request: Request) => Response | Promise<Response>;
}

const { Hono } = peer('hono') as { readonly Hono: new () => App };
const { serve } = peer('@hono/node-server') as { readonly serve: (options: object) => void };

const app = new Hono();
app.get('/livez', (context) => context.json({ status: 'ok' }));
serve({ fetch: app.fetch, port: Number(process.env['PORT']), hostname: '127.0.0.1' });
