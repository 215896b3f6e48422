import { pause } from '../core/pause.ts';
import type { Clock } from '../core/runtime.ts';
import type { Answers, Entry, Found, Place, Turns } from '../store/store.ts';

interface TurnTools {
  readonly answers: Answers;
  readonly turns: Turns;
  readonly clock: Clock;
}

interface Wanted {
  readonly place: Place;
  /** What the reader has found, under the versions of that moment. */
  readonly found: Found;
  readonly signal: AbortSignal;
}

/** A copy that another instance has made meanwhile, or the turn, which its holder ends. */
export type Turn = { readonly copy: Entry } | { readonly end: () => Promise<void> };

const LOOK_MS = 25;
/** Well before the turn of one who says nothing is over. */
const KEEP_MS = 300;

/**
 * Of several instances that want the same of the upstream one asks at a time; the others look for the copy that it makes.
 * Who has died loses its turn, and who finds that something was touched does not wait any longer.
 */
export async function takeTurn(tools: TurnTools, wanted: Wanted): Promise<Turn> {
  const { answers, turns, clock } = tools;
  const { place, found, signal } = wanted;
  for (;;) {
    const isMine = await turns.take(place, found.versions);
    if (!isMine) await pause(clock, LOOK_MS, signal);
    const { entry, versions } = await answers.lookup(place, clock.now()); // also with the turn: who had it may have saved just now
    const isMade = versions === found.versions && entry && entry.askedAt > (found.entry?.askedAt ?? 0);
    if (isMade && isMine) await turns.pass(place);
    if (isMade) return { copy: entry };
    if (isMine) return { end: keep(tools, wanted) };
    if (versions !== found.versions) return { end: async () => undefined };
  }
}

/** Says again and again that the turn is not over, until it is. */
function keep({ turns, clock }: TurnTools, { place, found }: Wanted): () => Promise<void> {
  let isOver = false;
  let cancel: () => void;
  const wait = () => {
    cancel = clock.after(KEEP_MS, () => void say());
  };
  const say = async () => {
    await turns.take(place, found.versions);
    if (isOver) await turns.pass(place);
    else wait();
  };
  wait();
  return () => {
    isOver = true;
    cancel();
    return turns.pass(place);
  };
}
