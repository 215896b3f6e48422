import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import { queriesOf } from 'portico-client/query';
import { announce } from './announcer.tsx';
import { Buy } from './buy.tsx';
import { Earnings } from './earnings.tsx';
import { useOverview } from './overview.ts';
import { OverviewSections } from './overview-sections.tsx';
import { portico } from './portico.ts';
import type { Session } from './session.ts';
import { SessionPanel } from './session-panel.tsx';
import { Switches } from './switches.tsx';
import { TopBar } from './top-bar.tsx';
import { Transactions } from './transactions.tsx';
import { Waterfalls } from './waterfalls.tsx';

interface Props {
  readonly session: Extract<Session, { is: 'in' }>;
  readonly onSignedOut: () => void;
}

export function Dashboard({ session, onSignedOut }: Props) {
  const overview = useOverview();
  const query = useMemo(() => queriesOf(portico, session.account), [session.account]);
  const queries = useQueryClient();
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);

  async function readAgain(fresh: boolean) {
    void queries.invalidateQueries();
    await overview.readAll({ fresh });
    announce('Your account: read again.');
  }

  return (
    <>
      <TopBar session={session} onSignedOut={onSignedOut} />
      <div className="columns">
        <main>
          <div className="title-row">
            <h1 ref={title} tabIndex={-1}>
              Your account
            </h1>
            <button type="button" onClick={() => void readAgain(false)}>
              Read again
            </button>
            <button type="button" onClick={() => void readAgain(true)}>
              Read everything again
            </button>
            <p className="small">“Read again” takes the gateway’s copies, “Read everything again” asks the upstream.</p>
          </div>
          <div className="grid">
            <OverviewSections {...overview} />
            <Buy onBought={() => void readAgain(false)} />
            <Earnings account={session.account} />
            <Transactions query={query} />
          </div>
        </main>
        <aside aria-label="Behind the page">
          <Switches />
          <Waterfalls />
          <SessionPanel session={session} />
        </aside>
      </div>
    </>
  );
}
