import { afterEach, expect, it } from 'vitest';
import { startSandbox } from '../../sandbox/src/node.ts';
import type { RunningSandbox } from '../../sandbox/src/node.ts';

let running: RunningSandbox | undefined;

afterEach(async () => {
  await running?.close();
  running = undefined;
});

const read = (url: string) =>
  fetch(`${url}/api/v2/payment/transaction/`, { headers: { Authorization: 'Token sandbox-paid-key' } });

it('listens on a free port, with its own address in the pages', async () => {
  running = await startSandbox();
  const page = (await (await read(running.url)).json()) as { next: string };
  expect(page.next).toBe(`${running.url}/api/v2/payment/transaction/?page=2`);
  expect(running.sandbox.calls()).toHaveLength(1);
});

it('cuts the connection for a reset, and lives on', async () => {
  running = await startSandbox();
  running.sandbox.addFault({ operation: 'listTransactions', reset: true });
  await expect(read(running.url)).rejects.toThrow('fetch failed');
  expect(await read(running.url)).toMatchObject({ status: 200 });
  expect(running.sandbox.calls().map(({ status }) => status)).toEqual([null, 200]);
});

it('is gone once closed', async () => {
  const started = await startSandbox();
  await started.close();
  await expect(read(started.url)).rejects.toThrow('fetch failed');
});

it('says so when the port is taken', async () => {
  running = await startSandbox();
  await expect(startSandbox({ port: Number(new URL(running.url).port) })).rejects.toThrow('EADDRINUSE');
});
