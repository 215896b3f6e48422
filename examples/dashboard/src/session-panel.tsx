import { useEffect, useState } from 'react';
import { Facts } from './facts.tsx';
import { Panel } from './panel.tsx';
import type { Session } from './session.ts';
import { dayAndTime } from './words.ts';

/** All places where a script could find a key. */
async function findings(): Promise<Record<string, string>> {
  const cookies = 'cookieStore' in window ? await cookieStore.getAll() : undefined;
  return {
    'document.cookie': document.cookie || 'nothing',
    cookieStore: cookies ? cookies.map(({ name }) => name).join(', ') || 'nothing' : 'not in this browser',
    localStorage: Object.keys(localStorage).join(', ') || 'nothing',
    sessionStorage: Object.keys(sessionStorage).join(', ') || 'nothing',
  };
}

/** Looked at again each second. */
function useFindings() {
  const [found, setFound] = useState<Record<string, string>>({});
  useEffect(() => {
    const look = () => void findings().then(setFound);
    look();
    const timer = setInterval(look, 1_000);
    return () => clearInterval(timer);
  }, []);
  return found;
}

export function SessionPanel({ session }: { readonly session: Extract<Session, { is: 'in' }> }) {
  const found = useFindings();
  return (
    <Panel title="What scripts can see of the session">
      <Facts of={found} />
      <p className="small">
        The key is in a cookie that only the browser reads. <code>GET /bff/v1/session</code> says:
      </p>
      <Facts of={{ account: <code>{session.account}</code>, until: dayAndTime(session.until) }} />
    </Panel>
  );
}
