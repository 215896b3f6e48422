import { onTestFinished } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { startUpstream, type Step } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

export const PATH = '/bff/v1/batch';
export const SUBSCRIPTION = '/api/v2/subscription/';
export const CONFIG = '/api/v2/referral/config/';
export const PENDING = '/api/v2/payment/pending/44/';
export const transaction = (id: number | string) => `/api/v2/payment/transaction/${id}/`;

export interface Response {
  readonly id: string;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An upstream that answers nothing yet, a gateway before it, a fresh account. */
export const startWorld = async (given: Parameters<typeof startGateway>[1] = {}) => {
  const upstream = await startUpstream();
  const gateway = await startGateway(upstream.url, given);
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
    upstream.assertNoUnexpected();
  });
  const token = secret();
  const post = (body: unknown, options: Partial<CallOptions> = {}) =>
    call(gateway.url, { method: 'POST', path: PATH, token, body, ...options });
  /** A batch of these paths, named r0, r1, … */
  const batch = (paths: readonly string[], options: Partial<CallOptions> = {}) =>
    post({ requests: paths.map((path, index) => ({ id: `r${index}`, path })) }, options);
  const get = (path: string, options: Partial<CallOptions> = {}) => call(gateway.url, { path, token, ...options });
  const on = (path: string, ...steps: Step[]) => void upstream.on(`GET ${path}`, ...steps);
  return { upstream, gateway, token, post, batch, get, on };
};

export const responsesOf = (answer: TextAnswer) => (answer.json as { responses: readonly Response[] }).responses;
