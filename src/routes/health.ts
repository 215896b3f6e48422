import * as z from 'zod/mini';
import { GatewayError } from '../core/errors.ts';
import { jsonAnswer, NO_STORE } from '../http/reply.ts';
import { model } from '../upstream/fields.ts';
import { about, pageAt, type Route } from './route.ts';

/** Whether this instance takes requests; false once it shuts down. */
export interface Readiness {
  isReady(): boolean;
}

const schema = model('Health', { status: z.enum(['live', 'ready']) });

export const healthDescriptions = [
  about('/livez', 'getLiveness', 'Whether this instance runs', ({ good, json, UNSTORED }) =>
    good('It is.', json(schema, { status: 'live' }), UNSTORED),
  ),
  about('/readyz', 'getReadiness', 'Whether this instance takes requests', ({ good, json, UNSTORED }) => ({
    description: '503 `not_ready` while it shuts down. Does not look at the upstream.',
    ...good('It is.', json(schema, { status: 'ready' }), UNSTORED),
  })),
];

/** `/livez`: the process runs. `/readyz`: it takes requests. The upstream's health is in neither. */
export function healthRoutes(readiness: Readiness): Route[] {
  const probes = [
    pageAt('/livez', async () => jsonAnswer({ status: 'live' })),
    pageAt('/readyz', async () => {
      if (!readiness.isReady()) throw GatewayError.of('not_ready', { retryAfter: 5 });
      return jsonAnswer({ status: 'ready' });
    }),
  ];
  return probes.map((probe) => ({ ...probe, isProbe: true }));
}

/** Reads everything that is measured, in a format of the runtime's choice. */
export type Scrape = () => Promise<{ readonly contentType: string; readonly text: string }>;

/** `/metrics`, for the admin listener only. */
export const metricsRoute = (scrape: Scrape): Route => ({
  ...pageAt('/metrics', async () => {
    const { contentType, text } = await scrape();
    return { status: 200, headers: { ...NO_STORE, 'Content-Type': contentType }, body: text };
  }),
  isProbe: true,
});
