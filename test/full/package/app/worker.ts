import { worker } from 'portico/worker';
import { appOn } from './app.ts';

export { Account } from 'portico/worker';

export default worker((options) => appOn(options).app);
