import { worker } from '../../../src/entry/worker/index.ts';
import { lengthenLimits } from '../../support/longer.ts';
import { hostOf } from './library.ts';

export { Account } from '../../../src/entry/worker/index.ts';

lengthenLimits();

/** The host on Workers. */
export default worker((options) => hostOf(options).app);
