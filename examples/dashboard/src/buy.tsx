import { type FormEvent, useRef, useState } from 'react';
import type { Answer } from 'portico-client';
import { Field } from './field.tsx';
import { Panel } from './panel.tsx';
import { Price } from './price.tsx';
import { messagesOf } from './problem.ts';
import { usePurchase } from './purchase.ts';
import { PurchaseStatus } from './purchase-status.tsx';

const AT_FIRST = 5;

interface Props {
  readonly subscription: Answer<'getSubscription'> | undefined;
  readonly onBought: () => void;
  /** The payment is through, or refused. */
  readonly onPaid: () => void;
}

/** Buys shared proxies in the US. */
export function Buy({ subscription, onBought, onPaid }: Props) {
  const [proxies, setProxies] = useState(AT_FIRST);
  const { purchase, clicks, buy, again } = usePurchase(onBought);
  const [needsRecaptcha, setNeedsRecaptcha] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const error = purchase.is === 'refused' ? purchase.error : undefined;
  const recaptchaErrors = messagesOf(error, 'recaptcha');
  if (recaptchaErrors.length > 0 && !needsRecaptcha) setNeedsRecaptcha(true);

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const recaptcha = fields.get('recaptcha');
    buy({
      proxy_type: 'shared',
      proxy_countries: { US: Number(fields.get('proxies')) },
      term: 'monthly',
      ...(typeof recaptcha === 'string' && recaptcha !== '' && { recaptcha }),
    });
  }

  function startAgain() {
    again();
    form.current?.querySelector('input')?.focus();
  }

  return (
    <Panel title="Buy a plan" size="half">
      <p>It replaces the one you have. You may click twice: you buy it once.</p>
      <form ref={form} onSubmit={submit} noValidate>
        <Field
          label="Shared proxies in the US"
          name="proxies"
          type="number"
          min={1}
          defaultValue={AT_FIRST}
          onChange={({ currentTarget }) => setProxies(currentTarget.valueAsNumber)}
          errors={messagesOf(error, 'proxy_countries')}
        />
        {needsRecaptcha && (
          <Field label="Recaptcha" name="recaptcha" hint="For the sandbox any text will do." errors={recaptchaErrors} />
        )}
        <Price proxies={proxies} subscription={subscription} />
        <button type="submit" className="main" aria-disabled={['bought', 'unknown', 'found'].includes(purchase.is)}>
          Buy
        </button>
      </form>
      <PurchaseStatus purchase={purchase} clicks={clicks} onAgain={startAgain} onPaid={onPaid} />
    </Panel>
  );
}
