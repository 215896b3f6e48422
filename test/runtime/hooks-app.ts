import type { Variables } from '../../src/config.ts';
import type { Hooks } from '../../src/upstream/hooks.ts';

/** Where keys are exchanged, at the upstream. */
export const TOKENS = '/tokens';

/** Both: keys are exchanged for tokens over the network, on whatever runtime. */
export const hooksFor = ({ UPSTREAM_BASE_URL: url }: Variables): Hooks => ({
  onProblem: (problem, { operation = 'none' }) => ({
    ...problem,
    help: `https://help.example/${problem.code}`,
    operation,
  }),
  async headers({ operation: { id }, credential = '', signal }) {
    const answer = await fetch(String(url) + TOKENS, { method: 'POST', body: credential, signal });
    if (!answer.ok) throw new Error('no token');
    return { Authorization: `Bearer ${await answer.text()}`, 'X-Operation': id };
  },
});
