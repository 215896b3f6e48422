import { isFromNowhere, type Place, type Turns, type Versions } from '../store.ts';
import { facesOf } from './face.ts';
import type { Remote } from './remote.ts';
import type { Vault } from './vault.ts';

interface TurnsOptions {
  readonly remote: Remote;
  readonly vault: Vault;
}

/** Of an instance that has died meanwhile. */
const TURN_MS = 1_000;

/** Turns of instances, under the first name of an account. An engine that does not answer makes nobody wait. */
export class SharedTurns implements Turns {
  readonly #of: TurnsOptions;
  readonly #instance = crypto.randomUUID();

  constructor(options: TurnsOptions) {
    this.#of = options;
  }

  async take({ account, key }: Place, versions: Versions): Promise<boolean> {
    const { remote, vault } = this.#of;
    const [face] = facesOf(account, vault);
    if (!face || isFromNowhere(versions)) return true;
    try {
      const turn = { key: await face.nameOf(key), versions, instance: this.#instance, lifeMs: TURN_MS };
      return await remote.takeTurn(face.account, turn);
    } catch {
      return true;
    }
  }

  async pass({ account, key }: Place): Promise<void> {
    const { remote, vault } = this.#of;
    const [face] = facesOf(account, vault);
    const name = face && (await face.nameOf(key));
    if (face && name)
      await remote.passTurn(face.account, { key: name, instance: this.#instance }).catch(() => undefined);
  }
}
