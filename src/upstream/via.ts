import { GatewayError } from '../core/errors.ts';
import { andThen, type Digest, type Soon } from '../core/runtime.ts';

/** A gateway of ours in a `Via` (RFC 9110, section 7.6.3), whatever protocol it was reached by. */
const GATEWAY = /(?<![^\s,])portico-[\w-]{12}(?![^\s,])/g;

const ID_LENGTH = 12;

/** No credential has a space in it. */
const HASHED = 'gateway in Via';

/** Tells in `Via` which gateways a request has been through: this one, and those of ours before it. */
export class Via {
  /** The same on all instances with this upstream and these secrets. */
  readonly #own: Soon<string>;

  constructor(digest: Pick<Digest, 'account'>) {
    this.#own = andThen(digest.account(HASHED), (hash) => `portico-${hash.slice(0, ID_LENGTH)}`);
  }

  /**
   * What is sent to the upstream, for a request that came with this.
   * Whatever else a client says of its way stays here.
   */
  after(came: string | undefined): Soon<string> {
    return andThen(this.#own, (own) => [...gatewaysIn(came), own].map((id) => `1.1 ${id}`).join(', '));
  }

  /** @throws GatewayError `loop_detected` if the request has been here */
  assertNew(came: string): Soon<void> {
    return andThen(this.#own, (own) => {
      if (gatewaysIn(came).includes(own)) throw GatewayError.of('loop_detected', { fault: 'not_sent' });
    });
  }
}

const gatewaysIn = (via: string | undefined): readonly string[] => via?.match(GATEWAY) ?? [];
