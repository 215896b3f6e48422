import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { Metrics } from '../../core/metrics.ts';
import type { Cors } from '../../http/cors.ts';
import { requestIdOf } from '../../http/trace.ts';
import type { Pressure } from './pressure.ts';
import { refusal } from './refusal.ts';

/** Whoever asks whether the process lives gets an answer, all the more when it is busy. */
const PROBE = /^\/(?:livez|readyz)\/?(?:\?|$)/;

const OVERLOADED = GatewayError.of('overloaded', { retryAfter: 1 });

interface ShedOptions {
  readonly pressure: Pressure;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly cors?: Cors | undefined;
}

interface Coming {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly target: string;
  /** How many there are with this one. */
  readonly inFlight: number;
}

/** Tells whether it has turned the request away. Without the app, which costs several times as much. */
export type Shed = (coming: Coming) => boolean;

export function shedder({ pressure, logger, metrics, cors }: ShedOptions): Shed {
  return ({ incoming, outgoing, target, inFlight }) => {
    if (!pressure.isOverloaded(inFlight) || PROBE.test(target)) return false;
    metrics.refused('event_loop');
    const { method = '', headers: sent } = incoming;
    const id = sent['x-request-id'];
    const requestId = requestIdOf(typeof id === 'string' ? id : undefined);
    const [instance = '/'] = target.split(/[?#]/, 1);
    const of = { logger, requestId, instance, method, cors, origin: sent.origin };
    const { status, headers, text } = refusal(OVERLOADED, of);
    outgoing.writeHead(status, headers).end(text);
    return true;
  };
}
