import { expect, vi } from 'vitest';
import { expectProblem } from '../../http/problem.ts';
import { call, type CallOptions } from '../../support/http.ts';
import { goodAnswer } from '../../support/marked.ts';
import { json, perCall, type ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { secret } from '../../support/secrets.ts';
import { TOKENS } from '../hooks-app.ts';

/** Instances with hooks, over one store, and the upstream that exchanges their keys. */
export interface HooksStage {
  readonly instances: readonly string[];
  readonly upstream: ScriptedUpstream;
}

interface HooksScenario {
  readonly name: string;
  run(stage: HooksStage): Promise<void>;
}

const READ = '/api/v2/subscription/';
const UNCACHED = '/api/v2/apikey/7/';
const OVERVIEW = '/bff/v1/account-overview';

/** A token says whose it is, and is another one each time. */
export function scriptTokens(upstream: ScriptedUpstream): void {
  let count = 0;
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, to.headers['authorization'] ?? 'nobody')),
  );
  upstream.on(
    `POST ${TOKENS}`,
    perCall(({ body }) => (body.startsWith('refused') ? json(401, {}) : json(200, `of-${body}-${++count}`))),
  );
}

/** A store that has just started may be too slow: a read is then not kept. */
export const untilKept = (stage: HooksStage) =>
  vi.waitFor(() => hitAtAll(stage, accountOf(stage)), { timeout: 40_000, interval: 100 });

async function hitAtAll({ instances }: HooksStage, { ask }: ReturnType<typeof accountOf>): Promise<void> {
  await ask(READ);
  for (const at of instances.keys()) expect((await ask(READ, { at })).headers['cache-status']).toMatch(/^portico; hit/);
}

/** Reads and tokens of one account, as its instances ask for them. */
function accountOf({ instances, upstream }: HooksStage, token = secret()) {
  const exchanged = () => upstream.callsTo(`POST ${TOKENS}`).filter(({ body }) => body === token).length;
  const sent = () =>
    upstream.calls.filter(({ headers }) => headers['authorization']?.startsWith(`Bearer of-${token}-`));
  const ask = (path: string, { at = 0, ...options }: Partial<CallOptions> & { readonly at?: number } = {}) =>
    call(instances[at % instances.length]!, { path, token, ...options });
  return { token, ask, exchanged, sent };
}

export const hooksScenarios: readonly HooksScenario[] = [
  {
    name: 'what the hook gives goes to the upstream, and for what is kept it is not asked',
    async run(stage) {
      const { ask, token, exchanged, sent } = accountOf(stage);
      const overview = await ask(OVERVIEW);
      expect([overview.status, exchanged(), sent().length]).toEqual([200, 4, 4]);
      for (const { headers } of sent()) expect(headers['x-operation']).toMatch(/^(get|list)[A-Z]/);
      expect(overview.text).toContain(`Bearer of-${token}-`);
      expect((await ask(READ)).headers['cache-status']).toMatch(/^portico; hit/);
      expect([exchanged(), sent().length]).toEqual([4, 4]);
    },
  },
  {
    name: 'each account has its own token, however many ask at once',
    async run(stage) {
      const accounts = Array.from({ length: 6 }, () => accountOf(stage));
      const asked = accounts.flatMap((one) =>
        [0, 1].map(async (at) => [one, await one.ask(UNCACHED, { at })] as const),
      );
      for (const [{ token }, answer] of await Promise.all(asked)) {
        expect(answer.status).toBe(200);
        expect(answer.text).toContain(`Bearer of-${token}-`);
      }
    },
  },
  {
    name: 'what one instance has read the others answer, without a token of their own',
    async run(stage) {
      const account = accountOf(stage);
      await hitAtAll(stage, account);
      const { exchanged, sent } = account;
      expect([exchanged(), sent().length]).toEqual([1, 1]);
    },
  },
  {
    name: 'where the hook fails it is a problem in the words of the other hook, and nothing is sent',
    async run(stage) {
      const { ask, sent } = accountOf(stage, `refused-${secret()}`);
      for (const path of [READ, OVERVIEW]) {
        const answer = await ask(path);
        expectProblem(answer, { status: 500, code: 'internal_error' });
        expect(answer.json).toMatchObject({ help: 'https://help.example/internal_error' });
      }
      expect(sent()).toEqual([]);
    },
  },
];
