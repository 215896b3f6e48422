import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../../core/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import type { Metrics } from '../../../core/metrics.ts';
import type { Cors } from '../../../http/cors.ts';
import { requestIdOf } from '../../../http/request-headers.ts';
import type { AddressOf } from './address.ts';
import type { Pressure } from './pressure.ts';
import { refusal } from './refusal.ts';

/** Probes are always answered: a busy process must not be taken for a dead one. */
const PROBE = /^\/(?:livez|readyz)\/?$/;

const OVERLOADED = GatewayError.of('overloaded', { retryAfter: 1 });

interface ShedOptions {
  readonly pressure: Pressure;
  readonly addressOf: AddressOf;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly cors?: Cors | undefined;
}

/** Requests of one address that are let in while others are turned away, up to twice as many in all. */
const FEW = 16;

type InFlight = Iterable<ServerResponse> & { readonly size: number };

interface Coming {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly path: string;
  /** This one among them. */
  readonly inFlight: InFlight;
}

/**
 * Returns whether it has turned the request away, first those of an address with many. Does so without the app, which
 * would cost several times as much.
 */
export type Shed = (coming: Coming) => boolean;

export function shedder({ pressure, addressOf, logger, metrics, cors }: ShedOptions): Shed {
  const isOneOfMany = (incoming: IncomingMessage, inFlight: InFlight) => {
    const address = addressOf(incoming);
    let many = 0;
    for (const { req } of inFlight) if (addressOf(req) === address && ++many > FEW) return true;
    return false;
  };
  return ({ incoming, outgoing, path, inFlight }) => {
    if (!pressure.isOverloaded(inFlight.size) || PROBE.test(path)) return false;
    if (!pressure.isOverloaded(inFlight.size / 2) && !isOneOfMany(incoming, inFlight)) return false;
    metrics.refused('event_loop');
    const { method = '', headers: sent } = incoming;
    const id = sent['x-request-id'];
    const requestId = requestIdOf(typeof id === 'string' ? id : undefined) ?? crypto.randomUUID();
    const context = { logger, requestId, instance: path, method, cors, origin: sent.origin };
    const { status, headers, text } = refusal(OVERLOADED, context);
    outgoing.writeHead(status, headers).end(text);
    return true;
  };
}
