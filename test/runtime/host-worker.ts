import { worker } from '../../src/entry/worker/index.ts';
import { portico } from '../../src/portico.ts';
import { overviews, proxyAccount } from '../../src/proxy-account/index.ts';
import { hostOf } from './host-app.ts';

export { Account } from '../../src/entry/worker/index.ts';

/** The host on Workers. */
export default worker((options) => hostOf(portico({ ...options, rows: proxyAccount, overviews }).app));
