import { type FormEvent, useEffect, useRef, useState } from 'react';
import { Field } from './field.tsx';
import { type Trouble, troubleOf } from './problem.ts';
import { setFaults } from './sandbox.ts';
import { signIn } from './session.ts';

/** Those of the sandbox. A key is no secret there. */
const accounts = [
  { key: 'sandbox-paid-key', name: 'Paid', about: 'a plan, three cards, 30 transactions' },
  { key: 'sandbox-affiliate-key', name: 'Affiliate', about: '240 referral credits' },
  { key: 'sandbox-nocard-key', name: 'No card', about: 'the free plan, and no card' },
  { key: 'sandbox-paused-key', name: 'Paused', about: 'a subscription that resumes in seven days' },
  { key: 'sandbox-lapsed-key', name: 'Lapsed', about: 'a card, and a plan that is no longer paid' },
  { key: 'sandbox-suspended-key', name: 'Suspended', about: 'every call is refused' },
] as const;

interface Props {
  readonly why: string | undefined;
  readonly onSignedIn: () => Promise<void>;
}

export function SignIn({ why, onSignedIn }: Props) {
  const [trouble, setTrouble] = useState<Trouble>();
  const [isBusy, setBusy] = useState(false);
  const title = useRef<HTMLHeadingElement>(null);

  // Whoever was sent here has to be told: the focus goes to the title, and the reason follows it.
  useEffect(() => {
    if (why !== undefined) title.current?.focus();
  }, [why]);

  // Trouble that is left on would keep everybody out, and its switches are on the other side.
  useEffect(() => void setFaults(new Set()), []);

  /** The key goes to the gateway, which puts it into a cookie that no script can read. It is kept nowhere else. */
  async function enter(key: string) {
    setBusy(true);
    setTrouble(undefined);
    try {
      await signIn(key);
      await onSignedIn();
    } catch (error) {
      setTrouble(troubleOf(error));
    } finally {
      setBusy(false);
    }
  }

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const key = new FormData(event.currentTarget).get('key');
    event.currentTarget.reset();
    if (typeof key === 'string' && key !== '') void enter(key);
  }

  return (
    <main className="sign-in">
      <p className="brand">Portico</p>
      <h1 ref={title} tabIndex={-1}>
        Sign in
      </h1>
      {why !== undefined && !trouble && <p className="notice">{why}</p>}
      <p>Choose one of the sandbox’s accounts.</p>
      <ul className="accounts" aria-busy={isBusy}>
        {accounts.map(({ key, name, about }) => (
          <li key={key}>
            <button type="button" onClick={() => void enter(key)} aria-describedby={`about-${key}`}>
              {name}
            </button>
            <span id={`about-${key}`}>{about}</span>
          </li>
        ))}
      </ul>
      <form onSubmit={submit}>
        <Field label="Another key" name="key" type="password" autoComplete="off" required />
        <button type="submit">Sign in</button>
        <p className="small">A key is sent to the gateway once, and comes back as a cookie that no script can read.</p>
      </form>
      <div role="alert">{trouble && `${trouble.detail} (${trouble.code})`}</div>
    </main>
  );
}
