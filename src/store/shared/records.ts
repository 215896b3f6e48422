import { GatewayError } from '../../core/errors.ts';
import type { Claim, Records, WriteAnswer, WriteRecord } from '../store.ts';
import { type Face, facesOf } from './face.ts';
import type { OwnRecords } from './own-records.ts';
import { type KnownRecord, MAX_VALUE_BYTES, type NewRecord, type Remote, type Stage } from './remote.ts';
import type { Untold } from './untold.ts';
import type { Vault } from './vault.ts';

export interface RecordsOptions {
  readonly remote: Remote;
  readonly vault: Vault;
  readonly untold: Untold;
  /** Where the engine may come back empty: what this instance has written, to be written again. */
  readonly own: OwnRecords | undefined;
}

/** A claim as it stands under one face of its account. */
interface Standing {
  readonly face: Face;
  readonly key: string;
  readonly seat: string;
}

/** What a record says, sealed. */
interface Content {
  readonly fingerprint: string;
  /** How long the request behind it may take, from when it was about to be sent. */
  readonly busyMs: number;
  readonly outcome: 'under_way' | 'unknown' | WriteAnswer;
}

const RETRY_SECONDS = 1;
/** For a request that ends a little late. */
const MARGIN_MS = 2_000;

/**
 * Records that instances share. A claim ends by itself when its request is over and nothing was sent; from `begin` on
 * the record stays, and once its request must be over it is one of unknown outcome.
 */
export class SharedRecords implements Records {
  readonly #of: RecordsOptions;

  constructor(options: RecordsOptions) {
    this.#of = options;
  }

  async claim(claim: Claim): Promise<WriteRecord | undefined> {
    await this.#of.untold.tell(claim.account).catch((error: unknown) => {
      throw unavailable(error);
    });
    try {
      return await this.#claimAll(claim);
    } catch (error) {
      await this.release(claim); // it may have been written all the same
      throw unavailable(error);
    }
  }

  async begin(claim: Claim): Promise<void> {
    const outcome = 'under_way';
    this.#of.own?.keep(claim, outcome);
    const advanced = await this.#each(claim, async (standing) =>
      this.#of.remote.advance(standing.face.account, await this.#record(claim, standing, { stage: 'sent', outcome })),
    ).catch((error: unknown) => {
      throw unavailable(error);
    });
    if (!advanced.every(Boolean)) throw unavailable();
  }

  async settle(claim: Claim, outcome: 'unknown' | WriteAnswer): Promise<void> {
    this.#of.own?.keep(claim, outcome);
    await this.#say(claim, () => this.write(claim, outcome));
  }

  async release(claim: Claim): Promise<void> {
    const { remote, own } = this.#of;
    own?.forget(claim);
    await this.#say(claim, async () => {
      await this.#each(claim, ({ face, key }) => remote.release(face.account, { key, nonce: claim.nonce }));
    });
  }

  /** @throws whatever the engine fails with */
  async write(claim: Claim, outcome: Content['outcome']): Promise<void> {
    const stage = outcome === 'under_way' ? 'sent' : 'settled';
    await this.#each(claim, async (standing) =>
      this.#of.remote.settle(standing.face.account, await this.#record(claim, standing, { stage, outcome })),
    );
  }

  /** Never rejects: what the engine does not hear now it hears before it is used again. */
  async #say(claim: Claim, say: () => Promise<void>): Promise<void> {
    this.#of.untold.keepRecord(claim.account, claim.nonce, say);
    await this.#of.untold.tell(claim.account).catch(() => undefined);
  }

  /** Under each face in an order that all instances share: of two claims at once one comes first. */
  async #claimAll(claim: Claim): Promise<WriteRecord | undefined> {
    const standings = await this.#standings(claim);
    for (const standing of standings) {
      const record = await this.#record(claim, standing, { stage: 'claimed', outcome: 'under_way' });
      const known = await this.#of.remote.claim(standing.face.account, record);
      if (!known) continue;
      if (standing !== standings[0]) await this.release(claim);
      return this.#read(claim, standing, known);
    }
    return undefined;
  }

  async #read({ fingerprint }: Claim, { seat }: Standing, known: KnownRecord): Promise<WriteRecord> {
    const text = await this.#of.vault.open(seat, known.value);
    // Sealed with a secret that is not listed here: that there is a record is all that can be said.
    if (text === undefined) return { fingerprint, outcome: known.stage === 'claimed' ? 'under_way' : 'unknown' };
    const content = JSON.parse(text) as Content; // sealed by an instance of ours
    const isOver = known.stage === 'sent' && known.ageMs > content.busyMs;
    return { fingerprint: content.fingerprint, outcome: isOver ? 'unknown' : content.outcome };
  }

  async #record(
    { fingerprint, nonce, now, endsAt, expiresAt }: Claim,
    { face, key, seat }: Standing,
    { stage, outcome }: { stage: Stage; outcome: Content['outcome'] },
  ): Promise<NewRecord> {
    const busyMs = endsAt - now + MARGIN_MS;
    const lifeMs = stage === 'claimed' ? busyMs : Math.max(busyMs, expiresAt - now);
    // With the secret of the name: an instance that knows only this one has to read it too.
    const sealed = (content: Content) => this.#of.vault.seal(seat, JSON.stringify(content), face.index);
    const value = await sealed({ fingerprint, busyMs, outcome });
    // Of an answer too large to be kept it is kept at least that there was one.
    const kept = value.length > MAX_VALUE_BYTES ? await sealed({ fingerprint, busyMs, outcome: 'unknown' }) : value;
    return { key, nonce, stage, value: kept, lifeMs };
  }

  async #standings({ account, key }: Claim): Promise<readonly Standing[]> {
    const standings = await Promise.all(
      facesOf(account, this.#of.vault).map(async (face) => {
        const name = await face.nameOf(`record ${key}`);
        return { face, key: name, seat: `record 1 ${face.account} ${name}` };
      }),
    );
    return standings.toSorted((a, b) => (a.face.account < b.face.account ? -1 : 1));
  }

  async #each<T>(claim: Claim, act: (standing: Standing) => Promise<T>): Promise<T[]> {
    return Promise.all((await this.#standings(claim)).map(act));
  }
}

function unavailable(cause?: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause;
  return GatewayError.of('store_unavailable', { fault: 'withheld', retryAfter: RETRY_SECONDS, cause });
}
