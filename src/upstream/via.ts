import { GatewayError } from '../core/errors.ts';

/** A gateway of ours in a `Via` (RFC 9110, section 7.6.3), whatever protocol it was reached by. */
const GATEWAY = /(?<![^\s,])portico-[\w-]{12}(?![^\s,])/g;

/** Tells in `Via` which gateways a request has been through: this one, and those of ours before it. */
export class Via {
  readonly #own: string;

  constructor(own: string) {
    this.#own = own;
  }

  /**
   * What is sent to the upstream, for a request that came with this.
   * Whatever else a client says of its way stays here.
   */
  after(came: string | undefined): string {
    return [...gatewaysIn(came), this.#own].map((id) => `1.1 ${id}`).join(', ');
  }

  /** @throws GatewayError `loop_detected` if the request has been here */
  assertNew(came: string | undefined): void {
    if (gatewaysIn(came).includes(this.#own)) throw GatewayError.of('loop_detected', { fault: 'not_sent' });
  }
}

const gatewaysIn = (via: string | undefined): readonly string[] => via?.match(GATEWAY) ?? [];
