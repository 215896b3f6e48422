import { GatewayError } from '../core/errors.ts';

/** The id of a Portico in a `Via` header (RFC 9110, section 7.6.3). */
const GATEWAY = /(?<![^\s,])portico-[\w-]{12}(?![^\s,])/g;

/** The `Via` header, in which each Portico that a request goes through adds its id. */
export class Via {
  readonly #own: string;
  /** The header of a request that has been through no other. */
  readonly #alone: string;

  constructor(own: string) {
    this.#own = own;
    this.#alone = `1.1 ${own}`;
  }

  /** The header to send upstream, for a request that came with the `Via` `received`. Entries of other proxies are left out. */
  headerFor(received: string | undefined): string {
    if (received === undefined) return this.#alone;
    return [...gatewaysIn(received), this.#own].map((id) => `1.1 ${id}`).join(', ');
  }

  /** @throws GatewayError `loop_detected` if the request has been here */
  assertNew(received: string | undefined): void {
    if (received !== undefined && gatewaysIn(received).includes(this.#own))
      throw GatewayError.of('loop_detected', { fault: 'not_sent' });
  }
}

const gatewaysIn = (via: string): readonly string[] => via.match(GATEWAY) ?? [];
