import { GatewayError } from '../core/errors.ts';
import { jsonAnswer } from '../middleware/reply.ts';
import { pageAt, type Route } from './route.ts';

/** Whether this instance takes requests; false once it shuts down. */
export interface Readiness {
  isReady(): boolean;
}

const RETRY_SECONDS = 5;

/** `/livez`: the process runs. `/readyz`: it takes requests. The upstream's health is in neither. */
export function healthRoutes(readiness: Readiness): Route[] {
  return [
    pageAt('/livez', async () => jsonAnswer({ status: 'live' })),
    pageAt('/readyz', async () => {
      if (!readiness.isReady()) throw GatewayError.of('not_ready', { retryAfter: RETRY_SECONDS });
      return jsonAnswer({ status: 'ready' });
    }),
  ];
}
