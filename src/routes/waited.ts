import type { Reader } from '../cache/reader.ts';
import { ClientLeft } from '../core/errors.ts';
import type { Soon } from '../core/runtime.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { sessionOver } from '../gateway/sessions.ts';
import type { Wait } from '../gateway/waiting.ts';
import { preferencesOf } from '../middleware/prefer.ts';
import type { Answer } from '../middleware/reply.ts';
import type { ClientRequest } from '../middleware/request.ts';

/** An answer, and when it may be another one by the wait. */
export interface Told {
  readonly answer: Answer;
  readonly nextAt: (wait: Wait) => number;
}

/** How a request is answered: what it asks of the store, and what it makes of that. */
interface Telling {
  readonly open: () => Soon<Reader>;
  readonly tell: (reader: Reader) => Soon<Told>;
}

/** For how many seconds a client that has a copy wants to wait for a newer one (`contract.md` section 6); else 0. */
export function secondsFor(request: ClientRequest): number {
  const prefer = request.header('if-none-match') === undefined ? undefined : request.header('prefer');
  return prefer === undefined || request.method !== 'GET' ? 0 : preferencesOf(prefer).waitSeconds;
}

/** The first answer that is no 304, or the 304 when the time is over. Where nobody more may wait the first answer comes. */
export async function waited(
  request: ClientRequest,
  gateway: Gateway,
  telling: Telling,
  seconds: number,
): Promise<Answer> {
  const { open, tell } = telling;
  if (seconds === 0) return (await tell(await open())).answer;
  const wait = gateway.waiting.begin(await gateway.accountOf(request));
  const stay = request.onLeft(() => wait.wake('left'));
  try {
    const first = await tell(await open());
    // Not before: the first reading may last, and its credential may be one that the upstream refuses.
    if (first.answer.status === 304 && !wait.takePlace()) return first.answer;
    const answer = await changed(request, first, { wait, ...telling, until: request.startedAt + seconds * 1000 });
    const applied = answer.headers['Preference-Applied'];
    const names = `${applied === undefined ? '' : `${applied}, `}wait=${seconds}`;
    return { ...answer, headers: { ...answer.headers, 'Preference-Applied': names } };
  } finally {
    stay();
    wait.end();
  }
}

interface Changing extends Telling {
  readonly wait: Wait;
  readonly until: number;
}

async function changed(request: ClientRequest, first: Told, { wait, open, tell, until }: Changing): Promise<Answer> {
  const isOver = () => request.tools.clock.now() >= until;
  let { answer, nextAt } = first;
  let at = nextAt(wait);
  let reader: Reader | undefined; // not the first: without copies it could not know all that it would read
  while (answer.status === 304) {
    const woken = await request.aside(() => wait.next(Math.min(until, at), reader));
    if (woken === 'left') throw new ClientLeft();
    reader = await open(); // whose session may have been revoked
    if (hasExpired(request)) throw sessionOver();
    if (woken === 'over') break;
    if (woken === 'changed' && (await reader.isHidden())) {
      at = wait.pollAt(); // the write is still under way, or nobody knows how it ended
      continue;
    }
    if (isOver()) request.isWaiting = false; // it may get an old copy now, like any other request
    ({ answer, nextAt } = await tell(reader));
    if (isOver()) break; // also where the reading has lasted until now
    at = nextAt(wait);
  }
  return answer;
}

const hasExpired = ({ session, tools }: ClientRequest): boolean =>
  session !== undefined && session.expiresAt * 1000 <= tools.clock.wall();
