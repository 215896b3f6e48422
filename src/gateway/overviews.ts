import type { Read } from '../upstream/call.ts';

/** One read, or the payment method that a subscription names: then the read only tells what it looks like. */
export interface Section extends Read {
  /** Its failure fails the whole. */
  readonly required?: true;
  /** Makes it a card: the section, before this one, whose `payment_method` is the card's id. */
  readonly cardOf?: string;
}

/** A composed endpoint as data (`contract.md` section 6). */
export interface Overview {
  readonly id: string;
  readonly path: `/bff/v1/${string}`;
  readonly summary: string;
  /** In the order in which they are answered. */
  readonly sections: Readonly<Record<string, Section>>;
}
