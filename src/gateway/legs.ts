import type { Reading } from '../cache/reading.ts';
import type { Reader } from '../cache/read-through.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Read } from '../upstream/request.ts';
import type { Gateway } from './gateway.ts';
import type { BadLeg, GoodLeg, Leg } from './overview.ts';

/** What the legs of one composed answer share. */
export interface LegTools {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly reader: Reader;
}

/** Reads one section. Refusals and failures become a bad leg; rejects only if the client has left. */
export async function readLeg({ gateway, clock, reader }: LegTools, { operation, input }: Read): Promise<Leg> {
  const begunAt = clock.now();
  try {
    const reading = await gateway.read(operation, input, reader);
    return goodLeg(reading, reader.context.origin, clock.now() - begunAt);
  } catch (error) {
    return badLeg(error, clock.now() - begunAt);
  }
}

/** @throws GatewayError `upstream_bad_response` if the upstream answered without a body */
export function goodLeg({ entry, age, ttl }: Reading, origin: string, ms: number): GoodLeg {
  if (entry === null)
    throw GatewayError.of('upstream_bad_response', { detail: 'The upstream answered without a body.' });
  const state = ttl !== undefined && ttl < 0 ? 'stale' : 'fresh';
  return { state, text: withOrigin(entry, origin), isAscii: entry.isAscii, etag: entry.etag, age, ttl, ms };
}

export function badLeg(error: unknown, ms: number): BadLeg {
  if (!(error instanceof GatewayError)) throw error;
  return { state: 'failed', error, ms };
}

/** 401 and 403 refuse the account, not only the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;
