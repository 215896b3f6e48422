import { startOfDay } from './clock.ts';
import { createSandbox } from './sandbox.ts';
import { workerOf } from '../../src/entry/worker/serve.ts';

export { Account } from '../../src/entry/worker/account.ts';

/** The worker for development: with `SANDBOX=true` and no upstream it brings one, which is this isolate's own. */
export default workerOf(() => {
  const { app, accounts } = createSandbox({ seedTime: startOfDay });
  return { fetch: (request) => app.fetch(request), accounts };
});
