import * as z from 'zod/mini';
import { documented, flag, resource, text } from '../fields.ts';
import { nameRows } from '../operation.ts';

const token = resource('Token', { token: text('usable as the credential of API requests', '<TOKEN>') });

const authorization = {
  provider: text('name of the identity provider', '<SUPPORTED_PROVIDER>').check(z.minLength(1)),
  code: text('authorization code from the provider', '<CODE>').check(z.minLength(1)),
  redirect_uri: text('redirect URI authorized with the provider', 'https://app.example/callback').check(z.minLength(1)),
};

/** Social registration and login (`upstream-api.md`, endpoints 28 and 29). */
export const social = nameRows('Social', {
  registerSocial: {
    at: 'POST /api/v2/register/social/',
    credential: 'none',
    body: {
      schema: z.looseObject({
        ...authorization,
        tos_accepted: documented(z.literal(true), { description: 'terms of service accepted', examples: [true] }),
        marketing_email_accepted: z.optional(flag('marketing e-mails may be sent', false)),
      }),
    },
    answer: token,
    invalidates: [],
    secrets: ['token', 'code'],
    summary: 'Register with a social identity provider',
  },
  loginSocial: {
    at: 'POST /api/v2/login/social/',
    credential: 'none',
    body: { schema: z.looseObject(authorization) },
    answer: token,
    invalidates: [],
    secrets: ['token', 'code'],
    summary: 'Log in with a social identity provider',
  },
});
