import * as z from 'zod/mini';
import { dated, documented, flag, identifier, integer, resource, text, timestamp } from '../upstream/fields.ts';
import { pageOf } from '../upstream/page.ts';
import { anyText, booleanText, orderingText, paging } from '../upstream/parameters.ts';
import { chapter, NOTICES } from './chapter.ts';

const apiKey = resource('ApiKey', {
  id: identifier('identifier', 1012),
  key: text('the secret key value', '<API_KEY>'),
  label: text('free label; may duplicate other labels', 'server'),
  ...dated,
});

/** API keys (`upstream-api.md`, endpoints 1 and 2). */
export const account = chapter('Account', 'API keys.', {
  getApiKey: { at: 'GET /api/v2/apikey/{id}/', answer: apiKey, group: 'apiKeys', secrets: ['key'] },
  createApiKey: {
    at: 'POST /api/v2/apikey/',
    body: { schema: resource('CreateApiKeyBody', { label: z.optional(text('free label', 'server')) }) },
    answer: apiKey,
    invalidates: ['apiKeys'],
    secrets: ['key'],
  },
});

const notificationResource = resource('Notification', {
  id: identifier('identifier', 101),
  type: text('what it is about', 'too_much_bandwidth_too_little_proxies'),
  is_dismissable: flag('whether it can be dismissed', true),
  context: documented(z.looseObject({}), { description: 'what it refers to', examples: [{ plan: 3 }] }),
  ...dated,
  dismissed_at: z.nullable(timestamp('when it was dismissed', '2026-06-10T11:50:08.101337-07:00')),
});

/** Notifications (`upstream-api.md`, endpoint 25). */
export const notification = chapter('Notifications', 'What the account should know.', {
  listNotifications: {
    at: 'GET /api/v2/notification/',
    query: {
      ...paging,
      dismissed_at__isnull: booleanText('True: not dismissed; False: dismissed'),
      ordering: orderingText('id', 'created_at', 'dismissed_at'),
      type: anyText(),
    },
    ...pageOf(notificationResource),
    group: 'notifications',
    cache: NOTICES,
  },
});

const idVerification = resource('IdVerification', {
  id: identifier('identifier', 111),
  state: text('`requested`, `failed` and `pending` are named', 'pending'),
  client_secret: text('client secret, given on start', '<CLIENT_SECRET>'),
  verification_failure_times: integer('failures so far', 0),
  max_verification_failure_times: integer('failures allowed', 3),
  ...dated,
  verified_at: z.nullable(timestamp('when it was verified')),
});

const evidence = z.looseObject({
  id: identifier('identifier', 122),
  explanation: text('written by the user', 'It was a test.'),
  ...dated,
  files: z.array(
    z.looseObject({
      id: identifier('identifier', 123),
      created_at: timestamp('when it was uploaded'),
      file: text('storage path', 'evidence/123.pdf'),
    }),
  ),
});

const verificationFlow = resource('VerificationFlow', {
  id: identifier('identifier', 1021),
  type: text('`acceptable_use_violation` is the one documented', 'acceptable_use_violation'),
  state: text('`inflow` is the one documented', 'inflow'),
  started_at: timestamp('when it was started'),
  updated_at: timestamp('when it last changed'),
  needs_evidence: flag('whether evidence is needed', true),
  evidence: z.nullable(evidence),
  id_verification_restores_access: flag('whether ID verification restores access', true),
  id_verification_required: flag('whether ID verification is required', false),
});

/** ID verification and account verification (`upstream-api.md`, endpoints 26 and 27). */
export const verification = chapter('Verification', 'ID verification and account verification.', {
  startIdVerification: {
    at: 'POST /api/v2/idverification/start/',
    body: { schema: documented(z.strictObject({}), { id: 'StartIdVerificationBody' }), optional: true },
    answer: idVerification,
    invalidates: ['verificationFlows'],
    secrets: ['client_secret'],
  },
  getVerificationFlow: {
    at: 'GET /api/v2/verification/flow/{id}/',
    answer: verificationFlow,
    group: 'verificationFlows',
  },
});

const token = resource('Token', { token: text('usable as the credential of API requests', '<TOKEN>') });

const authorization = {
  provider: text('name of the identity provider', '<SUPPORTED_PROVIDER>').check(z.minLength(1)),
  code: text('authorization code from the provider', '<CODE>').check(z.minLength(1)),
  redirect_uri: text('redirect URI authorized with the provider', 'https://app.example/callback').check(z.minLength(1)),
};

/** Social registration and login (`upstream-api.md`, endpoints 28 and 29). */
export const social = chapter('Social', 'Registration and login with an identity provider. No credential.', {
  registerSocial: {
    at: 'POST /api/v2/register/social/',
    credential: 'none',
    body: {
      schema: resource('RegisterSocialBody', {
        ...authorization,
        tos_accepted: documented(z.literal(true), { description: 'terms of service accepted', examples: [true] }),
        marketing_email_accepted: z.optional(flag('marketing e-mails may be sent', false)),
      }),
    },
    answer: token,
    invalidates: [],
    secrets: ['token', 'code'],
    signsIn: { as: 'register', token: 'token' },
    summary: 'Register with a social identity provider',
  },
  loginSocial: {
    at: 'POST /api/v2/login/social/',
    credential: 'none',
    body: { schema: resource('LoginSocialBody', authorization) },
    answer: token,
    invalidates: [],
    secrets: ['token', 'code'],
    signsIn: { as: 'login', token: 'token' },
    summary: 'Log in with a social identity provider',
  },
});
