import { ClientLeft } from '../core/errors.ts';
import type { MaybePromise } from '../core/runtime.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { sessionOver } from '../gateway/admission.ts';
import { preferencesOf } from '../http/prefer.ts';
import type { Answer } from '../http/reply.ts';
import type { HonoRequest } from '../http/request.ts';
import type { Snapshot } from '../store/snapshot.ts';

/** Milliseconds between two readings. A write of the account ends the pause. */
const PAUSE_MS = 2_000;

/** How a request is answered: its question to the store, and its answer from the snapshot. */
interface Answering {
  readonly open: () => MaybePromise<Snapshot>;
  readonly answer: (snapshot: Snapshot) => MaybePromise<Answer>;
}

/** For how many seconds a client with a copy wants to wait for a newer one (`contract.md` section 6); 0: not at all. */
export function waitSecondsOf(request: HonoRequest): number {
  const prefer = request.header('if-none-match') === undefined ? undefined : request.header('prefer');
  return prefer === undefined || request.method !== 'GET' ? 0 : preferencesOf(prefer).waitSeconds;
}

/** Reads until the answer is no 304, or the time is over. If there is no place to wait, the first answer counts. */
export async function answerOnChange(
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
    // A place is taken only after the first reading, which may last, and whose credential the upstream may refuse.
    if (answer.status === 304 && !waiting.takePlace(account, wait)) return answer;
    request.cacheMode = 'any'; // the first reading was as new as the client asked for
    while (answer.status === 304 && clock.now() < until && !waiting.isEnding) {
      await request.whileWaiting(() => wait.pause(clock, Math.min(PAUSE_MS, until - clock.now())));
      if (request.hasLeft) throw new ClientLeft();
      const snapshot = await open(); // throws if the session was revoked meanwhile
      if (hasExpired(request)) throw sessionOver();
      if (!waiting.isEnding) answer = await answerBy(snapshot);
    }
    const applied = answer.headers['Preference-Applied'];
    const names = `${applied === undefined ? '' : `${applied}, `}wait=${seconds}`;
    return { ...answer, headers: { ...answer.headers, 'Preference-Applied': names } };
  } finally {
    stopListening?.();
    waiting.end(account, wait);
  }
}

const hasExpired = ({ session, tools }: HonoRequest): boolean =>
  session !== undefined && session.expiresAt * 1000 <= tools.clock.wall();
