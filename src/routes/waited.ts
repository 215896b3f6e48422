import { ClientLeft } from '../core/errors.ts';
import type { MaybePromise } from '../core/runtime.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { sessionOver } from '../gateway/admission.ts';
import { preferencesOf } from '../http/prefer.ts';
import type { Answer } from '../http/reply.ts';
import type { HonoRequest } from '../http/request.ts';
import type { Snapshot } from '../store/snapshot.ts';

/** Between two readings, where no write of the account comes first. */
const PAUSE_MS = 2_000;

/** How a request is answered: what it asks of the store, and what it makes of that. */
interface Answering {
  readonly open: () => MaybePromise<Snapshot>;
  readonly answer: (snapshot: Snapshot) => MaybePromise<Answer>;
}

/** For how many seconds a client that has a copy wants to wait for a newer one (`contract.md` section 6); else 0. */
export function secondsFor(request: HonoRequest): number {
  const prefer = request.header('if-none-match') === undefined ? undefined : request.header('prefer');
  return prefer === undefined || request.method !== 'GET' ? 0 : preferencesOf(prefer).waitSeconds;
}

/** The first answer that is no 304, or the 304 when the time is over. Where nobody more may wait the first answer comes. */
export async function waited(
  request: HonoRequest,
  gateway: Gateway,
  { open, answer: answerBy }: Answering,
  seconds: number,
): Promise<Answer> {
  const { clock } = request.tools;
  const until = request.startedAt + seconds * 1000;
  const { waiting } = gateway;
  const account = await gateway.accountOf(request);
  const wait = waiting.begin(account);
  const stopListening = request.onLeft(() => wait.wake());
  try {
    let answer = await answerBy(await open());
    // A place is taken only now: the first reading may last, and the upstream may refuse its credential.
    if (answer.status === 304 && !waiting.takePlace(account, wait)) return answer;
    request.cacheMode = 'any'; // the first reading was as new as the client asked for
    while (answer.status === 304 && clock.now() < until && !waiting.isEnding) {
      await request.whileWaiting(() => wait.pause(clock, Math.min(PAUSE_MS, until - clock.now())));
      if (request.hasLeft) throw new ClientLeft();
      const snapshot = await open(); // whose session may have been revoked
      if (hasExpired(request)) throw sessionOver();
      if (!waiting.isEnding) answer = await answerBy(snapshot);
    }
    const applied = answer.headers['Preference-Applied'];
    const names = `${applied === undefined ? '' : `${applied}, `}wait=${seconds}`;
    return { ...answer, headers: { ...answer.headers, 'Preference-Applied': names } };
  } finally {
    stopListening();
    waiting.end(account, wait);
  }
}

const hasExpired = ({ session, tools }: HonoRequest): boolean =>
  session !== undefined && session.expiresAt * 1000 <= tools.clock.wall();
