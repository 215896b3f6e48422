import { portico } from '../portico.ts';
import { overviews, proxyAccount } from '../proxy-account/index.ts';
import { worker } from './worker/index.ts';

export { Account } from './worker/index.ts';

/** The worker as it is deployed. */
export default worker((options) => portico({ ...options, rows: proxyAccount, overviews }).app);
