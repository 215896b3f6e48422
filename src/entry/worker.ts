import { workerOf } from './worker/serve.ts';

export { Account } from './worker/account.ts';

/** The worker as it is deployed. */
export default workerOf();
