import { NO_STORE } from '../http/answer.ts';
import type { Route } from '../http/lifecycle.ts';

/** Reads everything that is measured, in a format of the runtime's choice. */
export type Scrape = () => Promise<{ readonly contentType: string; readonly text: string }>;

/** `/metrics`, for the admin listener only. */
export function metricsRoute(scrape: Scrape): Route {
  return {
    method: 'GET',
    path: '/metrics',
    name: '/metrics',
    async handle() {
      const { contentType, text } = await scrape();
      return { status: 200, headers: { ...NO_STORE, 'Content-Type': contentType }, body: text };
    },
  };
}
