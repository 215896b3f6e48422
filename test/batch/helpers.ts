import type { CallOptions, TextAnswer } from '../support/http.ts';
import type { Step } from '../support/scripted-upstream.ts';
import { openWorld } from '../support/world.ts';

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

/** A world with what batches are asked with. */
export const openBatch = async (...args: Parameters<typeof openWorld>) => {
  const world = await openWorld(...args);
  const { token } = world;
  const post = (body: unknown, options: Partial<CallOptions> = {}) =>
    world.call({ method: 'POST', path: PATH, token, body, ...options });
  /** A batch of these paths, named r0, r1, … */
  const batch = (paths: readonly string[], options: Partial<CallOptions> = {}) =>
    post({ requests: paths.map((path, index) => ({ id: `r${index}`, path })) }, options);
  const get = (path: string, options: Partial<CallOptions> = {}) => world.call({ path, token, ...options });
  const on = (path: string, ...steps: Step[]) => void world.upstream.on(`GET ${path}`, ...steps);
  return { ...world, post, batch, get, on };
};

export const responsesOf = (answer: TextAnswer) => (answer.json as { responses: readonly Response[] }).responses;
