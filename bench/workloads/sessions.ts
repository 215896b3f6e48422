import { setTimeout as sleep } from 'node:timers/promises';
import { SECRET } from '../harness/gateways.ts';
import { ALL_KEPT, startGateway, startUpstream } from '../harness/gateway.ts';
import { span, table } from '../harness/report.ts';
import { ask, compare, type Contender } from '../harness/rounds.ts';
import { isComplete, isHit, OVERVIEW, READ, type Workload } from '../harness/workload.ts';

const WITH_SESSIONS = { SESSIONS: 'true', SECRETS: SECRET };
const PAGE = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' };
const LEG_MS = 100;
const SIGN_INS = 5; // an address has twenty a minute
/** How long after the sign-in's answer the page asks for its overview. */
const PAUSES_MS = [0, 100, 300];

/** What a cookie costs beside a header, and what reading ahead after a sign-in is worth. */
export const sessions: Workload = {
  name: 'sessions',
  async run({ other }) {
    const server = await startGateway(await startUpstream(), { ...ALL_KEPT, ...WITH_SESSIONS });
    const headers = { Authorization: '', Cookie: await signIn(server.url, 'a-key-of-the-bench') };
    const contenders: readonly Contender[] = [
      { name: 'by header', server, load: { path: READ }, isRight: isHit },
      { name: 'by cookie', server, load: { path: READ, headers }, isRight: isHit },
      { name: 'overview by header', server, load: { path: OVERVIEW }, isRight: isComplete },
      { name: 'overview by cookie', server, load: { path: OVERVIEW, headers }, isRight: isComplete },
    ];
    await compare({ title: 'cached, with sessions', contenders, pace: other });
    await warmStart();
    return [];
  },
};

async function signIn(url: string, token: string): Promise<string> {
  const answer = await fetch(`${url}/bff/v1/session`, {
    method: 'POST',
    headers: PAGE,
    body: JSON.stringify({ token }),
  });
  if (answer.status !== 201) throw new Error(`sign-in: ${answer.status} ${await answer.text()}`);
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

/** From the sign-in's answer to a complete overview; and the same for a key in a header, which nobody has read ahead for. */
async function warmStart(): Promise<void> {
  const { url } = await startGateway(await startUpstream(LEG_MS), WITH_SESSIONS);
  const overviewMs = async (headers: Readonly<Record<string, string>>, pauseMs: number) => {
    await sleep(pauseMs);
    const beganAt = performance.now();
    const answer = await ask(url, { path: OVERVIEW, headers });
    if (!isComplete(answer)) throw new Error(`overview: ${answer.status} ${answer.text}`);
    return performance.now() - beganAt;
  };
  const rows = [];
  for (const pauseMs of PAUSES_MS) {
    const ahead: number[] = [];
    const cold: number[] = [];
    for (let time = 0; time < SIGN_INS; time++) {
      const cookie = await signIn(url, crypto.randomUUID());
      ahead.push(await overviewMs({ Authorization: '', Cookie: cookie }, pauseMs));
      cold.push(await overviewMs({ Authorization: `Token ${crypto.randomUUID()}` }, pauseMs));
    }
    rows.push([`${pauseMs} ms after the sign-in`, span(ahead, 0), span(cold, 0)]);
  }
  const columns = ['read ahead, ms', 'not read ahead, ms'];
  table(columns, 'first overview, legs of 100 ms', rows);
}
