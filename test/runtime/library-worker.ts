import { worker } from '../../src/entry/worker/index.ts';
import { portico } from '../../src/portico.ts';
import { rows, shelf } from '../library/library.ts';

export { Account } from '../../src/entry/worker/index.ts';

/** A gateway of another upstream on Workers. */
export default worker((options) => portico({ ...options, rows, overviews: [shelf] }).app);
