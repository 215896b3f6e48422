import { useEffect, useState } from 'react';
import type { Answer } from 'portico-client';
import { portico, unauthenticated } from './portico.ts';
import { troubleOf } from './problem.ts';

export type Session =
  | { readonly is: 'unknown' }
  | { readonly is: 'out'; readonly why?: string }
  | { readonly is: 'in'; readonly account: string; readonly until: string };

const ENDED = 'Your session has ended. Please sign in again.';
const ELSEWHERE = 'You have signed out in another tab.';

/** The 401 that a sign-out in another tab causes may be here before what that tab says. */
const HEARD_WITHIN_MS = 1_000;

/** Tells the other tabs, and hears from them. It carries no data of the account. */
const tabs = new BroadcastChannel('session');

export async function signIn(token: string): Promise<void> {
  await portico.createSession({ token });
  tabs.postMessage('signed in');
}

export async function signOut(everywhere: boolean): Promise<void> {
  await portico.deleteSession(everywhere ? { everywhere } : {});
  tabs.postMessage('signed out');
}

/** What the gateway's answer means, after what was known before. */
function next(before: Session, found: Answer<'getSession'>): Session {
  if (found.authenticated) return { is: 'in', account: found.account, until: found.expires_at };
  if (before.is === 'in') return { is: 'out', why: ENDED };
  return before.is === 'out' ? before : { is: 'out' };
}

/** The session as this tab knows it. It changes here, in another tab, or when a call is answered with 401. */
export function useSession() {
  const [session, setSession] = useState<Session>({ is: 'unknown' });
  const leave = (why: string) => setSession((before) => (before.is === 'in' ? { is: 'out', why } : before));

  /** Asks the gateway: the cookie cannot be looked at. */
  async function look() {
    try {
      const found = await portico.getSession();
      setSession((before) => next(before, found));
    } catch (error) {
      const { code, detail } = troubleOf(error);
      const why = code === 'unauthenticated' ? ENDED : detail;
      setSession((before) => (before.is === 'unknown' ? { is: 'out', why } : before));
    }
  }

  useEffect(() => {
    const ended = () => void setTimeout(leave, HEARD_WITHIN_MS, ENDED);
    const looked = () => void look();
    const heard = ({ data }: MessageEvent<string>) => (data === 'signed out' ? leave(ELSEWHERE) : looked());
    tabs.addEventListener('message', heard);
    unauthenticated.addEventListener('401', ended);
    window.addEventListener('focus', looked);
    looked();
    return () => {
      tabs.removeEventListener('message', heard);
      unauthenticated.removeEventListener('401', ended);
      window.removeEventListener('focus', looked);
    };
  }, []);

  return { session, look, leave };
}
