import { type FormEvent, useState } from 'react';
import { useMutation } from '@tanstack/react-query';
import type { Answer, Input } from 'portico-client';
import { Facts } from './facts.tsx';
import { Field } from './field.tsx';
import { portico } from './portico.ts';
import { messagesOf, summaryOf } from './problem.ts';
import { day, money } from './words.ts';

type Config = Answer<'getReferralConfig'>;
type Mode = 'credits' | 'payout';

interface Props {
  readonly config: Config;
  readonly onChanged: (config: Config) => void;
}

/** What referrals have earned, and how it is paid. */
export function Referral({ config, onChanged }: Props) {
  const { credits_earned, payouts_earned, next_earn_out_date, number_of_users_upgraded, referral_code } = config;
  return (
    <>
      <Facts
        of={{
          Code: <code>{referral_code}</code>,
          'Users who upgraded': number_of_users_upgraded,
          'Next earn-out': `${money(credits_earned + payouts_earned)} on ${day(next_earn_out_date)}`,
        }}
      />
      <ModeForm config={config} onChanged={onChanged} />
    </>
  );
}

function ModeForm({ config, onChanged }: Props) {
  const [chosen, setChosen] = useState<Mode>();
  const mode = chosen ?? (config.mode as Mode);
  const change = useMutation({
    mutationFn: (body: Input<'updateReferralConfig'>) => portico.updateReferralConfig(body),
    onSuccess: (changed) => {
      setChosen(undefined);
      onChanged(changed);
    },
  });

  function choose(next: Mode) {
    setChosen(next);
    change.reset();
  }

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const wallet = new FormData(event.currentTarget).get('wallet');
    const body = { mode };
    change.mutate(typeof wallet === 'string' ? { ...body, wallet_payout_email: wallet } : body);
  }

  return (
    <form onSubmit={submit} noValidate>
      <fieldset>
        <legend>Earnings are paid as</legend>
        <Choice value="credits" label="Account credits" chosen={mode} onChoose={choose} />
        <Choice value="payout" label="Payout to a wallet" chosen={mode} onChoose={choose} />
      </fieldset>
      {mode === 'payout' && (
        <Field
          label="Wallet e-mail"
          name="wallet"
          type="email"
          autoComplete="email"
          defaultValue={config.wallet_payout_email ?? ''}
          errors={messagesOf(change.error, 'wallet_payout_email')}
        />
      )}
      <div className="row">
        <button type="submit">Save</button>
        <span role="status">
          {change.isPending && 'Saving…'}
          {change.isSuccess && 'Saved.'}
          {change.isError && `Not saved. ${summaryOf(change.error)}`}
        </span>
      </div>
    </form>
  );
}

interface ChoiceProps {
  readonly value: Mode;
  readonly label: string;
  readonly chosen: Mode;
  readonly onChoose: (mode: Mode) => void;
}

function Choice({ value, label, chosen, onChoose }: ChoiceProps) {
  return (
    <label className="choice">
      <input type="radio" name="mode" value={value} checked={chosen === value} onChange={() => onChoose(value)} />
      {label}
    </label>
  );
}
