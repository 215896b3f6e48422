import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { build } from 'esbuild';
import { onTestFinished } from 'vitest';
import { createSandbox } from '../../../sandbox/src/sandbox.ts';
import { startGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import type { Report } from './scenario.ts';

export const TOKEN = 'sandbox-paid-key';

/** A gateway with sessions before a sandbox whose clock stands still, so that equal requests have equal answers. */
export async function openShop() {
  const sandbox = createSandbox({ now: () => Date.parse('2026-06-09T18:50:08.101Z') });
  const server = createAdaptorServer({ fetch: sandbox.app.fetch, overrideGlobalObjects: false }) as Server;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const env = { SESSIONS: 'true', SECRETS: secret('of-the-shop-and-its-sessions') };
  const gateway = await startGateway(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { env });
  onTestFinished(async () => {
    await gateway.close();
    server.close();
    server.closeAllConnections();
  });
  const charged = () => sandbox.calls().filter(({ operation }) => operation === 'purchasePlan').length;
  return { url: gateway.url, charged };
}
/** What the scenario comes to, in all runtimes. */
export const EXPECTED: Report = {
  session: {
    before: { authenticated: false },
    isSame: true,
    plan: 1003,
    mode: 'credits',
    ended: true,
    after: { authenticated: false },
    refused: 'unauthenticated',
  },
  overview: {
    data: { subscription: { id: 1005, plan: 1003 }, payment_method: { last4: '4242' } },
    errors: [],
    complete: true,
    sections: ['subscription', 'payment_method'],
  },
  stream: ['payment_method', 'pending_payments', 'subscription', 'transactions'],
  watch: ['payment_method', 'pending_payments', 'subscription', 'transactions'],
  paging: Array.from({ length: 30 }, (_, index) => 1230 - index),
  problems: {
    refused: ['validation_failed', 400, ['mode'], true],
    missing: ['not_found', 404, '/api/v2/payment/transaction/1/', true],
    unsent: ['connection_failed', 0, 'unknown'],
  },
  abort: ['gone', 'left'],
  purchase: { isOne: true, isNew: true, state: 'bought', same: true },
};

/** This text, and all that it imports from here, as one file for a runtime that is no Node. */
export async function bundled(contents: string, format: 'esm' | 'iife'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname, loader: 'ts' },
    write: false,
    bundle: true,
    format,
    // Knows no modules of Node: an import of one is an error.
    platform: 'neutral',
    target: 'es2022',
    logLevel: 'warning',
  });
  return outputFiles[0]!.text;
}
