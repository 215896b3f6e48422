import type { Answer } from 'portico-client';
import { Facts } from './facts.tsx';
import { spoken } from './words.ts';

export function Card({ card }: { readonly card: Answer<'getPaymentMethod'> | null }) {
  if (card === null) return <p>No card is saved.</p>;
  const { brand, last4, name, expiration_month, expiration_year, city, country } = card;
  return (
    <>
      <p className="figure">
        {spoken(brand ?? 'card')} <small>ends in {last4}</small>
      </p>
      <Facts
        of={{
          Holder: name,
          'Valid until': `${String(expiration_month).padStart(2, '0')}/${expiration_year}`,
          Address: [city, country].filter(Boolean).join(', ') || null,
        }}
      />
    </>
  );
}
