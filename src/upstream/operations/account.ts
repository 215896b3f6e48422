import * as z from 'zod/mini';
import { dated, identifier, resource, text } from '../fields.ts';
import { nameRows } from '../operation.ts';

const apiKey = resource('ApiKey', {
  id: identifier('identifier', 1012),
  key: text('the secret key value', '<API_KEY>'),
  label: text('free label; may duplicate other labels', 'server'),
  ...dated,
});

/** API keys (`upstream-api.md`, endpoints 1 and 2). */
export const account = nameRows('Account', {
  getApiKey: {
    at: 'GET /api/v2/apikey/{id}/',
    answer: apiKey,
    group: 'apiKeys',
    secrets: ['key'],
    summary: 'Read an API key',
  },
  createApiKey: {
    at: 'POST /api/v2/apikey/',
    body: { schema: z.looseObject({ label: z.optional(text('free label', 'server')) }) },
    answer: apiKey,
    invalidates: ['apiKeys'],
    secrets: ['key'],
    summary: 'Create an API key',
  },
});
