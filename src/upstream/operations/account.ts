import * as z from 'zod/mini';
import { integer, resource, text, timestamp } from '../fields.ts';
import { nameRows } from '../operation.ts';

const apiKey = resource('ApiKey', {
  id: integer('identifier', 12),
  key: text('the secret key value', '<API_KEY>'),
  label: text('free label; may duplicate other labels', 'server'),
  created_at: timestamp('when it was made', '2026-06-09T11:50:08.101337-07:00'),
  updated_at: timestamp('when it last changed', '2026-06-09T11:50:08.101337-07:00'),
});

/** API keys (`upstream-api.md`, endpoints 1 and 2). */
export const account = nameRows({
  getApiKey: {
    method: 'GET',
    path: '/api/v2/apikey/{id}/',
    idForm: 'digits',
    answer: apiKey,
    group: 'apiKeys',
    secrets: ['key'],
    tag: 'Account',
    summary: 'Read an API key',
  },
  createApiKey: {
    method: 'POST',
    path: '/api/v2/apikey/',
    body: { schema: z.looseObject({ label: z.optional(text('free label', 'server')) }) },
    answer: apiKey,
    invalidates: ['apiKeys'],
    secrets: ['key'],
    tag: 'Account',
    summary: 'Create an API key',
  },
});
