import { Comparison } from './comparison.tsx';
import { GatewayDrawer } from './gateway-drawer.tsx';
import { DrawerButton } from './panel.tsx';
import type { Session } from './session.ts';
import { SessionPanel } from './session-panel.tsx';
import { Switches } from './switches.tsx';

/** What no page of yours would have: ways to make it fail, and views of what happens. */
export function BehindThePage({ session }: { readonly session: Extract<Session, { is: 'in' }> }) {
  return (
    <aside aria-label="Behind the page">
      <Switches />
      <Comparison />
      <SessionPanel session={session} />
      <GatewayDrawer />
      <div className="dock">
        <DrawerButton drawer="faults">Make it fail</DrawerButton>
        <DrawerButton drawer="gateway">What the gateway did</DrawerButton>
      </div>
    </aside>
  );
}
