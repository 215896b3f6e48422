import { createClient, each, type Item } from 'portico-client';
import { routes } from './gateway.ts';

// A page of a gateway with an endpoint of its own, typed by what `portico client` has printed for it.

const portico = createClient({ url: 'https://bff.example', routes });

const badges = await portico.listBadges({ page: '2' });
export const titles: string[] = badges.results.map(({ title }) => title);
export const { plan } = await portico.getSubscription();

const inbox = await portico.getInboxOverview({ sections: ['badges', 'computed'] });
export const latest: string | undefined = inbox.data.badges?.results[0]?.title;
export const { computed } = inbox.data;

for await (const badge of each(portico, 'listBadges')) console.log(badge satisfies Item<'listBadges'>);

// @ts-expect-error there is no such operation
await portico.listBadgers();
// @ts-expect-error it was not asked for
console.log(inbox.data.notifications);
// @ts-expect-error a badge has a title
badges.results.map(({ title }) => title satisfies number);
