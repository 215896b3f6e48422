import { createClient, each, type Item, type OverviewInput, streamOverview, watchOverview } from 'portico-client';
import { routes } from './gateway.ts';

// A page of a gateway with an endpoint of its own, typed by what `portico client` has printed for it.

const portico = createClient({ url: 'https://bff.example', routes });

const badges = await portico.listBadges({ page: '2' });
export const titles: string[] = badges.results.map(({ title }) => title);
export const { plan } = await portico.getSubscription();

const inbox = await portico.getInboxOverview({ sections: ['badges', 'computed'] });
export const latest: string | undefined = inbox.data.badges?.results[0]?.title;
export const { computed } = inbox.data;

const { data, meta } = await portico.getSubuserOverview({ id: 7 });
export const number: number = data.subuser.id;
export const { state } = meta.sections.subuser;
// @ts-expect-error it may have failed
console.log(data.activity.count);
export const count: number | undefined = data.activity?.count;
const part = await portico.getSubuserOverview({ id: '7', sections: ['subuser'], fields: { subuser: ['id'] } });
export const onlyId: { id: number } = part.data.subuser;
// @ts-expect-error a field that was not asked for
console.log(part.data.subuser.name);
// @ts-expect-error a section that was not asked for
console.log(part.data.activity);
const input: OverviewInput<'getSubuserOverview'> = { id: 7, sections: ['activity'] };
await portico.response('getSubuserOverview', input);
for await (const line of streamOverview(portico, 'getSubuserOverview', { id: 7, fields: { subuser: ['id'] } }))
  if (line.section === 'subuser') console.log(line.data satisfies { id: number });
for await (const one of watchOverview(portico, 'subuser-overview', { id: 7, fields: { subuser: ['id'] } }))
  console.log(one.data.subuser satisfies { id: number });
// @ts-expect-error an id is needed
await portico.getSubuserOverview();
// @ts-expect-error also with other input
await portico.getSubuserOverview({ sections: ['subuser'] });
// @ts-expect-error also here
await portico.response('getSubuserOverview');
// @ts-expect-error and here
streamOverview(portico, 'getSubuserOverview');
// @ts-expect-error and here
watchOverview(portico, 'getSubuserOverview');
// @ts-expect-error there is no such section
await portico.getSubuserOverview({ id: 7, sections: ['badges'] });
// @ts-expect-error and the other overview takes no id
await portico.getInboxOverview({ id: 7 });

for await (const badge of each(portico, 'listBadges')) console.log(badge satisfies Item<'listBadges'>);

// @ts-expect-error there is no such operation
await portico.listBadgers();
// @ts-expect-error it was not asked for
console.log(inbox.data.notifications);
// @ts-expect-error a badge has a title
badges.results.map(({ title }) => title satisfies number);
