import { GatewayError } from '../../src/core/errors.ts';
import type { Variables } from '../../src/config.ts';
import type { Hooks } from '../../src/upstream/hooks.ts';

/** Where keys are exchanged, at the upstream. */
export const TOKENS = '/tokens';

/** All three: keys are exchanged for tokens over the network, on whatever runtime. */
export const hooksFor = ({ UPSTREAM_BASE_URL: url }: Variables): Hooks => ({
  onProblem: (problem, { operation = 'none' }) => ({
    ...problem,
    help: `https://help.example/${problem.code}`,
    operation,
  }),
  headers: ({ id }) => ({ 'X-Operation': id }),
  async credential(key, { signal }) {
    const answer = await fetch(String(url) + TOKENS, { method: 'POST', body: key, signal });
    if (answer.status === 401) throw GatewayError.of('unauthenticated', { detail: 'Sign in again.' });
    return { headers: { Authorization: `Bearer ${await answer.text()}` }, forSeconds: 600 };
  },
});
