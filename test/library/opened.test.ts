import { expect, test, vi } from 'vitest';
import { fromEnv } from '../../src/entry/node/index.ts';
import { overview } from '../../src/gateway/overviews.ts';
import { portico, type Runtime } from '../../src/portico.ts';
import { operations } from '../support/account-api.ts';

test('what is opened for a gateway that then cannot be is closed again', async () => {
  const { open, ...rest } = fromEnv({ UPSTREAM_BASE_URL: 'http://127.0.0.1:9', LOG_LEVEL: 'silent' }).runtime;
  const drained = vi.fn<() => void>();
  const runtime: Runtime = {
    ...rest,
    open: (given) => {
      const opened = open(given);
      return { ...opened, drain: () => opened.drain().then(drained) };
    },
  };
  const mine = overview('/bff/v1/mine', { subscription: { read: operations.getSubscription } });
  expect(() => portico({ runtime, rows: operations, overviews: [mine, mine] })).toThrow('is at the path of another');
  await vi.waitFor(() => expect(drained).toHaveBeenCalledTimes(1));
});
