import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Layer } from '../upstream/client.ts';

/**
 * Ends an attempt after `timeoutMs`, or sooner when its request has less left: one signal over connecting, waiting and
 * reading, since a body that drips would renew any timer on idleness.
 * @throws GatewayError `upstream_timeout`
 */
export function deadline({ clock, timeoutMs }: { clock: Clock; timeoutMs: number }): Layer {
  return (next) => async (call) => {
    const leftMs = call.endsAt - clock.now();
    if (leftMs <= 0) throw GatewayError.of('upstream_timeout', { fault: 'not_sent' });
    const controller = new AbortController();
    const leave = () => controller.abort(call.signal.reason);
    const expire = () => controller.abort(GatewayError.of('upstream_timeout', { fault: 'timeout' }));
    const cancel = clock.after(Math.min(timeoutMs, leftMs), expire);
    if (call.signal.aborted) leave();
    call.signal.addEventListener('abort', leave, { once: true });
    try {
      return await next({ ...call, signal: controller.signal });
    } finally {
      cancel();
      call.signal.removeEventListener('abort', leave);
    }
  };
}
