import type { Context, Hono } from 'hono';
import * as z from 'zod/mini';
import type { Calls } from './calls.ts';
import { type Faults, faultSchema } from './faults.ts';
import type { Instant } from './time.ts';

const TEN_YEARS = 10 * 365 * 24 * 3600;

const clockSchema = z.union([
  z.strictObject({ advanceSeconds: z.number().check(z.minimum(0), z.maximum(TEN_YEARS)) }),
  z.strictObject({ now: z.iso.datetime({ offset: true }) }),
]);

interface Controls {
  readonly calls: Calls;
  readonly faults: Faults;
  readonly now: () => Instant;
  readonly setClock: (to: Instant) => void;
  /** Everything as it was at the start: accounts, clock, faults, calls. */
  readonly reset: () => void;
}

/** What only a sandbox can do, for tests and demonstrations; without credential. */
export function mountControl(app: Hono, { calls, faults, now, reset, setClock }: Controls): void {
  app.post('/_sandbox/faults', async (c) => {
    const { error, data } = faultSchema.safeParse(await bodyOf(c));
    if (error) return refuse(c, error);
    faults.add(data);
    return c.body(null, 204);
  });
  app.delete('/_sandbox/faults', doing(faults.clear));
  app.post('/_sandbox/clock', async (c) => {
    const { error, data } = clockSchema.safeParse(await bodyOf(c));
    if (error) return refuse(c, error);
    setClock('now' in data ? Date.parse(data.now) : now() + data.advanceSeconds * 1000);
    return c.json({ now: new Date(now()).toISOString() });
  });
  app.post('/_sandbox/reset', doing(reset));
  app.get('/_sandbox/calls', (c) => c.json(calls.all));
  app.delete('/_sandbox/calls', doing(calls.clear));
}

const doing = (act: () => void) => (c: Context) => {
  act();
  return c.body(null, 204);
};

const bodyOf = (c: Context): Promise<unknown> => c.req.json().catch(() => undefined);

const refuse = (c: Context, error: z.core.$ZodError) => c.json({ error: z.prettifyError(error) }, 400);
