import { beforeAll, describe, expect, test } from 'vitest';
import { allOperations, type OperationId } from '../support/account-api.ts';
import { ask, fleetOfFile, isHit, prime, testWhatIsKept, writeThrough } from './fleet.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import type { TextAnswer } from '../support/http.ts';
import { markOf, idOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, type Barrier, hold, reply, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { invalidatedReads } from '../support/table.ts';
import { isOf } from '../support/versioned-upstream.ts';

const writes = allOperations
  .filter(({ method, invalidates = [] }) => method !== 'GET' && invalidates.length > 0)
  .map(({ id }) => id);

const pairs = writes.flatMap((write) => invalidatedReads(write).map((read) => [write, read] as const));

/** It may be kept, under a version that no later read finds: this instance has not heard of the write. */
const expectOld = (answer: TextAnswer) => {
  expect(markOf(answer.text)).toBe(1);
  expect(isHit(answer)).toBe(false);
};

describe.skipIf(!hasRedis)(`across two instances${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([fleet().start(), fleet().start()]);
  }, 30_000);

  /** A new account, whose next call of an operation may be held. */
  const account = () => {
    const token = secret();
    const next = (id: OperationId, step: Step): Barrier => {
      const gate = barrier();
      fleet().upstream.once((to) => isOf(token, to) && idOf(to) === id, reply(hold(gate), step));
      return gate;
    };
    return {
      read: (at: NodeGateway, id: OperationId) => ask(at, id, { token }),
      write: (at: NodeGateway, id: OperationId) => writeThrough(at, id, { token }),
      prime: (at: NodeGateway, id: OperationId) => prime(at, id, { token }),
      /** The answer of this moment is ready, and goes out later. */
      holdRead: (id: OperationId) => next(id, fleet().answerOf(fleet().versionOf(token))),
      /** Carried out when it is released. */
      holdWrite: (id: OperationId) => next(id, fleet().answer()),
    };
  };

  type Account = ReturnType<typeof account>;

  /** Through both, twice: what is stored then is of now too. */
  const expectNew = async ({ read, prime: untilHit }: Account, id: OperationId) => {
    for (const at of [a, b, a, b]) expect(markOf((await read(at, id)).text)).toBe(2);
    for (const at of [a, b]) await untilHit(at, id);
    for (const at of [a, b]) expect(markOf((await read(at, id)).text)).toBe(2);
  };

  describe.each(pairs)('%s and %s', (write, read) => {
    test('a read through one from before a write through the other, released after the answer to it', async () => {
      const one = account();
      const held = one.holdRead(read);
      const slow = one.read(a, read);
      await held.reached;
      await one.write(b, write);
      expect(markOf((await one.read(a, read)).text)).toBe(2); // it does not join the one from before
      expect(markOf((await one.read(b, read)).text)).toBe(2);
      held.release();
      expectOld(await slow);
      await expectNew(one, read);
    });

    test('the same without a read in between', async () => {
      const one = account();
      const held = one.holdRead(read);
      const slow = one.read(a, read);
      await held.reached;
      await one.write(b, write);
      held.release();
      expectOld(await slow);
      await expectNew(one, read);
    });

    test('a read from before the write, released while it is under way', async () => {
      const one = account();
      const [held, writing] = [one.holdRead(read), one.holdWrite(write)];
      const slow = one.read(a, read);
      await held.reached;
      const written = one.write(b, write);
      await writing.reached;
      held.release();
      expectOld(await slow);
      writing.release();
      await written;
      await expectNew(one, read);
    });

    test('a read that began and ended while the write was under way', async () => {
      const one = account();
      const writing = one.holdWrite(write);
      const written = one.write(b, write);
      await writing.reached;
      expect(markOf((await one.read(a, read)).text)).toBe(1);
      writing.release();
      await written;
      await expectNew(one, read);
    });

    test('a read that began while the write was under way, released after the answer to it', async () => {
      const one = account();
      const writing = one.holdWrite(write);
      const written = one.write(b, write);
      await writing.reached;
      const held = one.holdRead(read);
      const slow = one.read(a, read);
      await held.reached;
      writing.release();
      await written;
      held.release();
      expectOld(await slow);
      await expectNew(one, read);
    });

    test('copies in both from before the write are not used while it is under way', async () => {
      const one = account();
      await one.prime(a, read);
      await one.prime(b, read);
      const writing = one.holdWrite(write);
      const written = one.write(b, write);
      await writing.reached;
      expect(isHit(await one.read(a, read))).toBe(false);
      writing.release();
      await written;
      await expectNew(one, read);
    });
  });

  testWhatIsKept(fleet);
});
