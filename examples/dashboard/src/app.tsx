import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Announcer } from './announcer.tsx';
import { Dashboard } from './dashboard.tsx';
import { forgetCalls } from './gateway-log.ts';
import { useSession } from './session.ts';
import { SignIn } from './sign-in.tsx';

export function App() {
  const { session, look, leave } = useSession();
  const queries = useQueryClient();
  const account = session.is === 'in' ? session.account : undefined;

  // Nothing of an account stays behind for the next one.
  useEffect(
    () => () => {
      queries.clear();
      forgetCalls();
    },
    [account, queries],
  );

  return (
    <>
      <Announcer />
      {session.is === 'unknown' && <p className="looking">One moment…</p>}
      {session.is === 'out' && <SignIn why={session.why} onSignedIn={look} />}
      {session.is === 'in' && (
        <Dashboard key={session.account} session={session} onSignedOut={() => leave('You have signed out.')} />
      )}
    </>
  );
}
