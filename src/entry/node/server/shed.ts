import type { ServerResponse } from 'node:http';
import type { App } from '../../../app.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { Metrics } from '../../../core/metrics.ts';
import type { AddressOf } from './address.ts';
import type { NodeInbound } from './inbound.ts';
import type { LoopPressure } from './pressure.ts';

/** Probes are always answered: a busy process must not be taken for a dead one. */
export const PROBE = /^\/(?:livez|readyz)\/?$/;

const OVERLOADED = GatewayError.of('overloaded', { retryAfter: 1 });

interface ShedOptions {
  readonly app: Pick<App, 'refuse'>;
  readonly pressure: Pick<LoopPressure, 'isOverloaded'>;
  readonly addressOf: AddressOf;
  readonly metrics: Metrics;
}

/** Requests of one address that are let in while others are turned away, up to twice as many in all. */
const FEW = 16;

type InFlight = Iterable<ServerResponse> & { readonly size: number };

/** Returns whether it has turned the request away, which is one of those in flight; first those of an address with many. */
export function shedder({ app, pressure, addressOf, metrics }: ShedOptions) {
  const isOneOfMany = ({ address }: NodeInbound, inFlight: InFlight) => {
    let many = 0;
    for (const { req } of inFlight) if (addressOf(req) === address && ++many > FEW) return true;
    return false;
  };
  return (inbound: NodeInbound, inFlight: InFlight): boolean => {
    if (!pressure.isOverloaded(inFlight.size) || PROBE.test(inbound.path)) return false;
    if (!pressure.isOverloaded(inFlight.size / 2) && !isOneOfMany(inbound, inFlight)) return false;
    metrics.refused('event_loop');
    inbound.send(app.refuse(inbound, OVERLOADED));
    return true;
  };
}
