import type { Answer } from 'portico-client';
import { day, spoken } from './words.ts';

/** Types that the document names; there may be others. */
const TEXTS: Readonly<Record<string, string>> = {
  too_much_bandwidth_too_little_proxies: 'Much bandwidth for so few proxies',
  subscription_renewal_upcoming: 'Your plan will be renewed soon',
};

export function Notifications({ page }: { readonly page: Answer<'listNotifications'> }) {
  if (page.count === 0) return <p>There are none.</p>;
  return (
    <ul className="notices">
      {page.results.map(({ id, type, created_at }) => (
        <li key={id}>
          {TEXTS[type] ?? spoken(type)} <time dateTime={created_at}>{day(created_at)}</time>
        </li>
      ))}
    </ul>
  );
}
