import type { GatewayError } from '../core/errors.ts';
import type { Entry } from '../store/port.ts';

/** Result of a section, in the terms of `meta.sections`. `ms` in milliseconds, `age` and `ttl` in seconds. */
export type Leg = GoodLeg | BadLeg | { readonly state: 'not_applicable'; readonly ms: number };

export interface GoodLeg {
  readonly state: 'fresh' | 'stale';
  /** JSON, value for value the upstream's. */
  readonly text: string;
  /** The copy or the answer that it is, or is a part of; undefined where it was computed. */
  readonly entry: Entry | undefined;
  /** Whether copies of it may be kept at all. */
  readonly isCacheable: boolean;
  /** Strong validator of the text, quoted; empty if none has been made yet. */
  readonly etag: string;
  readonly age: number;
  /** How long the cached copy stays fresh, negative when stale; undefined when the upstream was asked. */
  readonly ttl: number | undefined;
  /** Why the upstream did not give a newer one. */
  readonly code: string | undefined;
  readonly ms: number;
}

export interface BadLeg {
  readonly state: 'failed' | 'skipped';
  readonly error: GatewayError;
  readonly ms: number;
}

export const isGood = (leg: Leg): leg is GoodLeg => 'text' in leg;

export const isBad = (leg: Leg): leg is BadLeg => 'error' in leg;

/** 401 and 403 refuse the account, not only the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;
