import * as z from 'zod';
import { flag, resource, text } from '../fields.ts';
import { nameRows } from '../operation.ts';

const token = resource('Token', { token: text('usable as the credential of API requests', '<TOKEN>') });

const authorization = {
  provider: z
    .string()
    .min(1)
    .meta({ description: 'name of the identity provider', examples: ['<SUPPORTED_PROVIDER>'] }),
  code: z
    .string()
    .min(1)
    .meta({ description: 'authorization code from the provider', examples: ['<CODE>'] }),
  redirect_uri: z
    .string()
    .min(1)
    .meta({ description: 'redirect URI authorized with the provider', examples: ['https://app.example/callback'] }),
};

/** Social registration and login (`upstream-api.md`, endpoints 28 and 29). */
export const social = nameRows({
  registerSocial: {
    method: 'POST',
    path: '/api/v2/register/social/',
    credential: 'none',
    body: {
      schema: z.looseObject({
        ...authorization,
        tos_accepted: z.literal(true).meta({ description: 'terms of service accepted', examples: [true] }),
        marketing_email_accepted: flag('marketing e-mails may be sent', false).optional(),
      }),
    },
    answer: token,
    touches: [],
    secrets: ['token', 'code'],
    tag: 'Social',
    summary: 'Register with a social identity provider',
  },
  loginSocial: {
    method: 'POST',
    path: '/api/v2/login/social/',
    credential: 'none',
    body: { schema: z.looseObject(authorization) },
    answer: token,
    touches: [],
    secrets: ['token', 'code'],
    tag: 'Social',
    summary: 'Log in with a social identity provider',
  },
});
