import { createSandbox } from './sandbox.ts';
import { worker } from '../../src/entry/worker/index.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';

export { Account } from '../../src/entry/worker/index.ts';

/** The worker for development: with `SANDBOX=true` and no upstream it brings one, which is this isolate's own. */
export default worker(
  (options) => portico({ ...options, rows: proxyAccount, overviews }).app,
  () => {
    const { app, accounts } = createSandbox();
    return { fetch: (request) => app.fetch(request), accounts };
  },
);
