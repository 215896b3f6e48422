import { onTestFinished } from 'vitest';
import { startRecordingSandbox } from '../../runtime/recording-sandbox.ts';
import { startGateway } from '../../support/gateway.ts';
import { call } from '../../support/http.ts';
import { secret } from '../../support/secrets.ts';
import type { Report } from './scenario.ts';

export const TOKEN = 'sandbox-paid-key';
export const OTHER = 'sandbox-affiliate-key';

/** A gateway with sessions before a sandbox whose clock stands still, so that equal requests have equal answers. */
export async function openShop() {
  const sandbox = await startRecordingSandbox();
  onTestFinished(() => sandbox.close());
  const env = { SESSIONS: 'true', SECRETS: secret('of-the-shop-and-its-sessions'), RATE_LIMIT_PER_MINUTE: '0' };
  const gateway = await startGateway(sandbox.url, { env });
  onTestFinished(() => gateway.close());
  return {
    url: gateway.url,
    charged: async () => {
      const { json } = await call(sandbox.url, { path: '/_sandbox/calls' });
      return (json as { operation: string }[]).filter(({ operation }) => operation === 'purchasePlan').length;
    },
  };
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
  batch: { plan: 1003, none: 'not_found', cards: 3 },
  problems: {
    refused: ['validation_failed', 400, ['mode'], true],
    missing: ['not_found', 404, '/api/v2/payment/transaction/1/', true],
    unsent: ['connection_failed', 0, 'unknown'],
  },
  abort: ['gone', 'left'],
  purchase: { isOne: true, isNew: true, state: 'bought', same: true },
  query: { queryKey: ['me', 'listTransactions', { page_size: 2 }, 'pages'], ids: [1229, 1228] },
  copies: { isSameText: true },
  changed: { byCookie: 'overloaded', byKey: 'overloaded' },
  foreign: { code: 'unexpected_answer', outcome: 'unknown', isSameKey: true, nothing: null },
};
