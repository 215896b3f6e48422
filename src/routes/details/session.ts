import * as z from 'zod/mini';
import { documented, model, text, timestamp } from '../../upstream/fields.ts';
import type { Schema } from './schemas.ts';
import { tools } from './tools.ts';

const sessionSchema = model('Session', {
  authenticated: z.literal(true),
  expires_at: timestamp('when the cookie expires unless it is used', '2026-11-29T18:09:43.000Z'),
  account: text('the same for every session of a key', 'V-64kLo1mift-T1IVWdr9SMDAe4rIjpOFrOy0tkUS-A'),
});

const stateSchema = documented(z.union([sessionSchema, z.object({ authenticated: z.literal(false) })]), {
  id: 'SessionState',
});

const SET_COOKIE = {
  'Set-Cookie': { description: 'The session, for browsers only.', schema: { type: 'string' } },
} as const;

export const sessionDetails = {
  looking() {
    const content = tools.json(stateSchema, { authenticated: false });
    return {
      responses: { 200: { description: 'Whether it is.', headers: tools.unstored, content }, ...tools.refused },
    };
  },

  ending(query: Readonly<Record<string, Schema>>) {
    const gone = { description: 'Signed out. The cookie is cleared.', headers: SET_COOKIE };
    return { parameters: tools.parameters('query', query), responses: { 204: gone, ...tools.refused } };
  },

  beginning(body: Schema) {
    const description = 'Signed in. The key is in the cookie and nowhere else.';
    const headers = { ...tools.unstored, ...SET_COOKIE };
    return {
      request: { body: { required: true, content: tools.json(body) } },
      responses: { 201: { description, headers, content: tools.json(sessionSchema) }, ...tools.refused },
    };
  },
};
