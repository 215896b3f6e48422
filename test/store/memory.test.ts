import { Accounts } from '../../src/store/accounts.ts';
import { MemoryBackend } from '../../src/store/memory.ts';
import { manualClock } from '../support/clock.ts';
import { storeContract } from './contract.ts';

storeContract('the store of one process', () => {
  const clock = manualClock();
  const store = new Accounts({ backend: new MemoryBackend({ now: () => clock.now() }), clock, maxBytes: 8_388_608 });
  return { instances: [store, store], clock, pass: (ms) => clock.advance(ms) };
});
