import { useState } from 'react';
import { type Trouble, troubleOf } from './problem.ts';
import { type Session, signOut } from './session.ts';

interface Props {
  readonly session: Extract<Session, { is: 'in' }>;
  readonly onSignedOut: () => void;
}

export function TopBar({ session, onSignedOut }: Props) {
  const [trouble, setTrouble] = useState<Trouble>();

  async function leave(everywhere: boolean) {
    try {
      await signOut(everywhere);
      onSignedOut();
    } catch (error) {
      setTrouble(troubleOf(error));
    }
  }

  return (
    <header className="top-bar">
      <p className="brand">Portico</p>
      <p className="who">
        Account <code>{session.account.slice(0, 8)}</code>
      </p>
      <div className="row">
        <button type="button" onClick={() => void leave(false)}>
          Sign out
        </button>
        <button type="button" onClick={() => void leave(true)}>
          Sign out everywhere
        </button>
      </div>
      <p role="alert">{trouble?.detail}</p>
    </header>
  );
}
