import { NO_STORE } from '../middleware/reply.ts';
import { pageAt, type Route } from './route.ts';

/** Reads everything that is measured, in a format of the runtime's choice. */
export type Scrape = () => Promise<{ readonly contentType: string; readonly text: string }>;

/** `/metrics`, for the admin listener only. */
export const metricsRoute = (scrape: Scrape): Route =>
  pageAt('/metrics', async () => {
    const { contentType, text } = await scrape();
    return { status: 200, headers: { ...NO_STORE, 'Content-Type': contentType }, body: text };
  });
