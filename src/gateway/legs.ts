import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Reading } from '../cache/reading.ts';
import type { Reader } from '../upstream/caller.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Read } from '../upstream/request.ts';
import type { Gateway } from './gateway.ts';
import { type BadLeg, type Leg } from './overview.ts';

/** What the legs of one composed answer share. */
export interface LegTools {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly caller: Reader;
  /** Origin for the links of pages. */
  readonly origin: string;
}

/** One read as a section. Refusals and failures come out as a bad leg; it rejects only when the client has left. */
export async function readLeg(tools: LegTools, { operation, input }: Read): Promise<Leg> {
  const begunAt = tools.clock.now();
  try {
    const reading = await tools.gateway.read(operation, input, tools.caller);
    return goodLeg(reading, sectionOf(reading, tools.origin), tools.clock.now() - begunAt);
  } catch (error) {
    return badLeg(error, tools.clock.now() - begunAt);
  }
}

function goodLeg({ state, age, outcome }: Reading, text: string, ms: number): Leg {
  return { state, text, age, ttl: outcome.hit?.ttl, ms };
}

/** @throws GatewayError `upstream_bad_response` where the upstream answered a read without a body */
function sectionOf({ entry }: Reading, origin: string): string {
  if (entry !== null) return withOrigin(entry, origin);
  throw GatewayError.of('upstream_bad_response', { detail: 'The upstream answered without a body.' });
}

export function badLeg(error: unknown, ms: number): BadLeg {
  if (!(error instanceof GatewayError)) throw error;
  return { state: 'failed', error, ms };
}

/** Says something about the account, not about the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;

/** A controller that is aborted with its parent, or on its own. */
export function endingWith(parent: AbortSignal): AbortController {
  const controller = new AbortController();
  const end = () => controller.abort(parent.reason);
  if (parent.aborted) end();
  else parent.addEventListener('abort', end, { once: true, signal: controller.signal });
  return controller;
}
