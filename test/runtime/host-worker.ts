import type { ExecutionContext } from 'hono';
import { appOf } from '../../src/entry/worker/serve.ts';
import { hostOf } from './host-app.ts';

export { Account } from '../../src/entry/worker/account.ts';

let host: ReturnType<typeof hostOf> | undefined;

/** The host on Workers. */
export default {
  async fetch(request: Request, env: Record<string, unknown>, execution: ExecutionContext): Promise<Response> {
    host ??= hostOf((await appOf(env, undefined)).app);
    return host.fetch(request, env, execution);
  },
};
