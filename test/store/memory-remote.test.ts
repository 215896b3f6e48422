import { SharedStore } from '../../src/store/shared.ts';
import { Vault } from '../../src/store/shared/vault.ts';
import { systemClock } from '../../src/entry/node/deps.ts';
import { answersContract } from './contract.ts';
import { ENGINE_SLACK_MS, type SharedEngine } from './engine.ts';
import { limitsContract } from './limits.ts';
import { MemoryRemote } from './memory-remote.ts';
import { recordsContract } from './records.ts';
import { SECRET } from './redis-world.ts';
import { sharingContract } from './sharing.ts';
import { visitsContract } from './visits.ts';

/** What stands in for an engine elsewhere answers the contract too. */
function engine(): SharedEngine {
  const remote = new MemoryRemote();
  const open = () =>
    new SharedStore({ remote, vault: new Vault([SECRET]), maxBytes: 1_048_576, clock: systemClock, isVolatile: true });
  return { store: open(), other: open(), pass: (ms) => remote.pass(ms), slackMs: ENGINE_SLACK_MS };
}

for (const contract of [answersContract, visitsContract, recordsContract, limitsContract, sharingContract])
  contract('the shared store on an engine of this process', engine);
