import type { Context, Hono } from 'hono';
import * as z from 'zod';
import type { RecordedCall } from './calls.ts';
import { type FaultInput, faultSchema } from './faults.ts';

/** What only a sandbox can do. */
export interface Controls {
  /** Calls so far, oldest first. */
  readonly calls: () => readonly RecordedCall[];
  readonly clearCalls: () => void;
  readonly addFault: (fault: FaultInput) => void;
  readonly clearFaults: () => void;
  /** Milliseconds since 1970, on the sandbox's clock. */
  readonly now: () => number;
  readonly advanceClock: (seconds: number) => void;
  readonly setClock: (epochMs: number) => void;
  /** Everything as it was at the start: accounts, clock, faults, calls. */
  readonly reset: () => void;
}

const TEN_YEARS = 10 * 365 * 24 * 3600;

const clockSchema = z.union([
  z.strictObject({ advanceSeconds: z.number().min(0).max(TEN_YEARS) }),
  z.strictObject({ now: z.iso.datetime({ offset: true }) }),
]);

/** The same over HTTP, for tests and demonstrations; without credential. */
export function mountControl(app: Hono, sandbox: Controls): void {
  app.post('/_sandbox/faults', (c) =>
    withBody(c, faultSchema, (fault) => {
      sandbox.addFault(fault);
      return c.body(null, 204);
    }),
  );
  app.delete('/_sandbox/faults', (c) => {
    sandbox.clearFaults();
    return c.body(null, 204);
  });
  app.post('/_sandbox/clock', (c) =>
    withBody(c, clockSchema, (change) => {
      if ('now' in change) sandbox.setClock(Date.parse(change.now));
      else sandbox.advanceClock(change.advanceSeconds);
      return c.json({ now: new Date(sandbox.now()).toISOString() });
    }),
  );
  app.post('/_sandbox/reset', (c) => {
    sandbox.reset();
    return c.body(null, 204);
  });
  app.get('/_sandbox/calls', (c) => c.json(sandbox.calls()));
  app.delete('/_sandbox/calls', (c) => {
    sandbox.clearCalls();
    return c.body(null, 204);
  });
}

async function withBody<T>(c: Context, schema: z.ZodType<T>, act: (value: T) => Response): Promise<Response> {
  const body: unknown = await c.req.json().catch(() => undefined);
  const checked = schema.safeParse(body);
  return checked.success ? act(checked.data) : c.json({ error: z.prettifyError(checked.error) }, 400);
}
