import { worker } from '../../src/entry/worker/index.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';
import { hooksFor } from './hooks-app.ts';

export { Account } from '../../src/entry/worker/index.ts';

/** A gateway with hooks on Workers. */
export default worker(({ runtime }) => {
  return portico({ runtime, rows: proxyAccount, overviews, ...hooksFor(runtime.variables) }).app;
});
