import type { Engine } from '../../src/store/shared/engine.ts';

/** The same engine, whose bytes are Buffers: tests compare them with those. */
export const withBuffers = (engine: Engine): Engine => ({
  async snapshot(account, question) {
    const { keys, ...rest } = await engine.snapshot(account, question);
    const replies = keys.map((reply) => {
      const { copy } = reply ?? {};
      return reply && copy?.value ? { ...reply, copy: { ...copy, value: Buffer.from(copy.value) } } : reply;
    });
    return { ...rest, keys: replies };
  },
  save: (account, save) => engine.save(account, save),
  async beginWrite(account, write) {
    const begun = await engine.beginWrite(account, write);
    return begun.is === 'record' ? { ...begun, value: Buffer.from(begun.value) } : begun;
  },
  endWrite: (account, write) => engine.endWrite(account, write),
  change: (account, change) => engine.change(account, change),
});
