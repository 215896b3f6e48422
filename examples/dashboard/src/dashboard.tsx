import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { announce } from './announcer.tsx';
import { Banner } from './banner.tsx';
import { BehindThePage } from './behind-the-page.tsx';
import { Buy } from './buy.tsx';
import { Earnings } from './earnings.tsx';
import { useOverview } from './overview.ts';
import { OverviewSections } from './overview-sections.tsx';
import { portico } from './portico.ts';
import type { Session } from './session.ts';
import { TopBar } from './top-bar.tsx';
import { PAGE, Transactions } from './transactions.tsx';

interface Props {
  readonly session: Extract<Session, { is: 'in' }>;
  readonly onSignedOut: () => void;
}

export function Dashboard({ session, onSignedOut }: Props) {
  const overview = useOverview();
  const queries = useQueryClient();
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), []);

  async function readAgain(read: () => Promise<void> = overview.readAgain) {
    void queries.invalidateQueries();
    await read();
    announce('Your account: read again.');
  }

  /** The gateway cannot know that a payment has ended: its copies are from before. */
  async function showPaid() {
    await portico.listTransactions(PAGE, { fresh: true }).catch(() => undefined);
    await readAgain();
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
            <button type="button" onClick={() => void readAgain()}>
              Read again
            </button>
            <button type="button" onClick={() => void readAgain(overview.readEverything)}>
              Read everything again
            </button>
            <p className="small">
              The page follows the account by itself. “Read again” takes the gateway’s copies, “Read everything again”
              is a first visit, and asks the upstream.
            </p>
          </div>
          <Banner sections={overview.sections} onRetry={() => void readAgain()} />
          <div className="grid">
            <OverviewSections {...overview} />
            <Buy
              subscription={overview.sections.subscription.data}
              onBought={() => void readAgain()}
              onPaid={() => void showPaid()}
            />
            <Earnings account={session.account} />
            <Transactions account={session.account} />
          </div>
        </main>
        <BehindThePage session={session} />
      </div>
    </>
  );
}
