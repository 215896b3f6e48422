import type { Reading } from '../cache/reading.ts';
import type { Reader } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Soon } from '../core/soon.ts';
import type { Entry } from '../store/store.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Read } from '../upstream/call.ts';
import type { Gateway } from './gateway.ts';

/** Result of a section, in the terms of `meta.sections`. `ms` in milliseconds, `age` and `ttl` in seconds. */
export type Leg = GoodLeg | BadLeg | { readonly state: 'not_applicable'; readonly ms: number };

export interface GoodLeg {
  readonly state: 'fresh' | 'stale';
  /** JSON, value for value the upstream's. */
  readonly text: string;
  /** The copy or the answer that it is, or is a part of. */
  readonly entry: Entry;
  /** Strong validator of the text, quoted; empty if none has been made yet. */
  readonly etag: string;
  readonly age: number;
  /** How long the cached copy stays fresh, negative when stale; undefined when the upstream was asked. */
  readonly ttl: number | undefined;
  readonly ms: number;
}

export interface BadLeg {
  readonly state: 'failed' | 'skipped';
  readonly error: GatewayError;
  readonly ms: number;
}

export const isGood = (leg: Leg): leg is GoodLeg => 'text' in leg;

export const isBad = (leg: Leg): leg is BadLeg => 'error' in leg;

/** What the legs of one composed answer share. */
export interface LegTools {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly reader: Reader;
}

/** One section from a fresh copy, without waiting. */
export function freshLeg(reader: Reader, read: Read): GoodLeg | undefined {
  const reading = reader.fresh(read);
  return reading && goodLeg(reading, reader.context, 0);
}

/** Reads one section, at once if it can be. */
export const readLeg = (tools: LegTools, read: Read): Soon<Leg> => freshLeg(tools.reader, read) ?? askLeg(tools, read);

/** Refusals and failures become a bad leg; rejects only if the client has left. */
async function askLeg({ gateway, clock, reader }: LegTools, read: Read): Promise<Leg> {
  const begunAt = clock.now();
  try {
    const reading = await gateway.read(read, reader);
    return goodLeg(reading, reader.context, clock.now() - begunAt);
  } catch (error) {
    return badLeg(error, clock.now() - begunAt);
  }
}

/** @throws GatewayError `upstream_bad_response` if the upstream answered without a body */
function goodLeg({ entry, age, ttl }: Reading, request: { readonly origin: string }, ms: number): GoodLeg {
  if (entry === null)
    throw GatewayError.of('upstream_bad_response', { detail: 'The upstream answered without a body.' });
  const state = ttl !== undefined && ttl < 0 ? 'stale' : 'fresh';
  return { state, text: withOrigin(entry, request), entry, etag: entry.etag, age, ttl, ms };
}

export function badLeg(error: unknown, ms: number): BadLeg {
  if (!(error instanceof GatewayError)) throw error;
  return { state: 'failed', error, ms };
}

/** 401 and 403 refuse the account, not only the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;
