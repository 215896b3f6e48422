import * as z from 'zod';
import type { account as rows } from '../../../src/proxy-account/account.ts';
import { checkFields } from '../body.ts';
import { byId, created, ok, type Handler } from '../call.ts';

const LONGEST_LABEL = 255;

const newKey = z.looseObject({ label: z.string().max(LONGEST_LABEL).default('') });

export const accountHandlers: Record<keyof typeof rows, Handler> = {
  getApiKey: ({ account, id }) => ok(byId(account.apiKeys, id)),

  createApiKey: ({ account, body, now, world }) => {
    const { label } = checkFields(newKey, body);
    const id = world.nextId();
    const apiKey = { id, key: `sandbox-api-key-${id}`, label, created_at: now, updated_at: now };
    account.apiKeys.push(apiKey);
    world.credentials.set(apiKey.key, { account, kind: 'programmatic' });
    return created(apiKey);
  },
};
