import { GatewayError } from '../core/errors.ts';

/** A gateway of ours in a `Via` (RFC 9110, section 7.6.3), whatever protocol it was reached by. */
const GATEWAY = /(?<![^\s,])portico-[\w-]{12}(?![^\s,])/g;

/** Tells in `Via` which gateways a request has been through: this one, and those of ours before it. */
export class Via {
  readonly #own: string;
  /** What is sent for a request that has been through no other. */
  readonly #alone: string;

  constructor(own: string) {
    this.#own = own;
    this.#alone = `1.1 ${own}`;
  }

  /**
   * What is sent to the upstream, for a request that came with this.
   * Whatever else a client says of its way stays here.
   */
  after(came: string | undefined): string {
    if (came === undefined) return this.#alone;
    return [...gatewaysIn(came), this.#own].map((id) => `1.1 ${id}`).join(', ');
  }

  /** @throws GatewayError `loop_detected` if the request has been here */
  assertNew(came: string | undefined): void {
    if (came !== undefined && gatewaysIn(came).includes(this.#own))
      throw GatewayError.of('loop_detected', { fault: 'not_sent' });
  }
}

const gatewaysIn = (via: string): readonly string[] => via.match(GATEWAY) ?? [];
