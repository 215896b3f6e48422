import type { notification as rows } from '../../../src/proxy-account/account.ts';
import { ok, type Answer, type Call, type Handler } from '../call.ts';
import { booleanParameter, documentedOrdering, orderBy } from '../filters.ts';
import { paginate } from '../paging.ts';

function listNotifications({ account, query, url }: Call): Answer {
  const open = booleanParameter(query, 'dismissed_at__isnull');
  const type = query.get('type') ?? '';
  const notifications = account.notifications.filter(
    (one) => (open === null || (one.dismissed_at === null) === open) && (type === '' || one.type === type),
  );
  const ordering = documentedOrdering(query, ['id', 'created_at', 'dismissed_at'], '-created_at');
  return ok(paginate(orderBy(notifications, ordering), url));
}

export const notificationHandlers: Record<keyof typeof rows, Handler> = { listNotifications };
