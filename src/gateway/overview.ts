import type { GatewayError } from '../core/errors.ts';
import type { Operation } from '../upstream/operation.ts';

/** A section that is one read. */
interface ReadSection {
  readonly from: 'read';
  readonly operation: Operation;
  /** Query of the read, without the question mark. */
  readonly query?: string;
  /** Its failure fails the whole. */
  readonly required?: true;
}

/** The payment method that a subscription names. */
interface CardSection {
  readonly from: 'card';
  /** The section whose `payment_method` is the card's id. */
  readonly of: string;
  /** What the section looks like. */
  readonly operation: Operation;
}

export type Section = ReadSection | CardSection;

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  readonly path: `/bff/v1/${string}`;
  readonly summary: string;
  /** In the order in which they are answered; what a section depends on comes before it. */
  readonly sections: Readonly<Record<string, Section>>;
}

/** Result of a section, in the terms of `meta.sections`. `ms` in milliseconds, `age` and `ttl` in seconds. */
export type Leg = GoodLeg | BadLeg | { readonly state: 'not_applicable'; readonly ms: number };

export interface GoodLeg {
  readonly state: 'fresh' | 'stale';
  /** JSON, value for value the upstream's. */
  readonly text: string;
  /** Whether `text` is known to be all ASCII. */
  readonly isAscii?: boolean | undefined;
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
