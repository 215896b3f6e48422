import { startOfDay } from '../sandbox/clock.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import { workerOf } from './worker/serve.ts';

export { Account } from './worker/account.ts';

/** The worker for development: with `SANDBOX=true` and no upstream it brings one, which is this isolate's own. */
export default workerOf(() => {
  const { app, accounts } = createSandbox({ seedTime: startOfDay });
  return { fetch: (request) => app.fetch(request), accounts };
});
