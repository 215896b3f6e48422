import * as z from 'zod/mini';
import { dated, flag, identifier, INSTANT, integer, resource, text, timestamp } from '../fields.ts';
import { nameRows } from '../operation.ts';

const idVerification = resource('IdVerification', {
  id: identifier('identifier', 111),
  state: text('`requested`, `failed` and `pending` are named', 'pending'),
  client_secret: text('client secret, given on start', '<CLIENT_SECRET>'),
  verification_failure_times: integer('failures so far', 0),
  max_verification_failure_times: integer('failures allowed', 3),
  ...dated,
  verified_at: z.nullable(timestamp('when it was verified', INSTANT)),
});

const evidence = z.looseObject({
  id: identifier('identifier', 122),
  explanation: text('written by the user', 'It was a test.'),
  ...dated,
  files: z.array(
    z.looseObject({
      id: identifier('identifier', 123),
      created_at: timestamp('when it was uploaded', INSTANT),
      file: text('storage path', 'evidence/123.pdf'),
    }),
  ),
});

const verificationFlow = resource('VerificationFlow', {
  id: identifier('identifier', 1021),
  type: text('`acceptable_use_violation` is the one documented', 'acceptable_use_violation'),
  state: text('`inflow` is the one documented', 'inflow'),
  started_at: timestamp('when it was started', INSTANT),
  updated_at: timestamp('when it last changed', INSTANT),
  needs_evidence: flag('whether evidence is needed', true),
  evidence: z.nullable(evidence),
  id_verification_restores_access: flag('whether ID verification restores access', true),
  id_verification_required: flag('whether ID verification is required', false),
});

/** ID verification and account verification (`upstream-api.md`, endpoints 26 and 27). */
export const verification = nameRows('Verification', {
  startIdVerification: {
    at: 'POST /api/v2/idverification/start/',
    body: { schema: z.strictObject({}), optional: true },
    answer: idVerification,
    invalidates: ['verificationFlows'],
    secrets: ['client_secret'],
    summary: 'Start ID verification',
  },
  getVerificationFlow: {
    at: 'GET /api/v2/verification/flow/{id}/',
    answer: verificationFlow,
    group: 'verificationFlows',
    summary: 'Read an account verification flow',
  },
});
