import * as z from 'zod/mini';
import { dated, documented, flag, identifier, pageOf, resource, text, timestamp } from '../fields.ts';
import { nameRows } from '../operation.ts';
import { anyText, booleanText, orderingText, paging } from '../parameters.ts';

const notificationResource = resource('Notification', {
  id: identifier('identifier', 101),
  type: text('what it is about', 'too_much_bandwidth_too_little_proxies'),
  is_dismissable: flag('whether it can be dismissed', true),
  context: documented(z.looseObject({}), { description: 'what it refers to', examples: [{ plan: 3 }] }),
  ...dated,
  dismissed_at: z.nullable(timestamp('when it was dismissed', '2026-06-10T11:50:08.101337-07:00')),
});

/** Notifications (`upstream-api.md`, endpoint 25). */
export const notification = nameRows('Notifications', {
  listNotifications: {
    at: 'GET /api/v2/notification/',
    query: {
      ...paging,
      dismissed_at__isnull: documented(booleanText, { description: 'True: not dismissed; False: dismissed' }),
      ordering: orderingText('id', 'created_at', 'dismissed_at'),
      type: anyText,
    },
    ...pageOf(notificationResource),
    cache: { fresh: 10, stale: 60, onError: 3600 },
    group: 'notifications',
    summary: 'List notifications',
  },
});
