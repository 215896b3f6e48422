import type { account, notification, verification } from '../../../src/proxy-account/account.ts';
import { byId, created, ok, type Answer, type Call, type Handler } from '../call.ts';
import { forbidden, refused } from '../errors.ts';
import { checkFields } from '../input.ts';
import { list } from '../list.ts';
import { operations } from '../operations.ts';

function createApiKey({ account, body, now, world }: Call): Answer {
  const { label = '' } = checkFields(operations.createApiKey.body.schema, body);
  const id = world.nextId();
  const apiKey = { id, key: `sandbox-api-key-${id}`, label, created_at: now, updated_at: now };
  account.apiKeys.push(apiKey);
  world.credentials.set(apiKey.key, { account, kind: 'programmatic' });
  return created(apiKey);
}

/** The state table of the document. A person has to do it, hence not with a key that endpoint 2 made. */
function startIdVerification({ account, kind, now, world }: Call): Answer {
  if (kind === 'programmatic') {
    throw forbidden('This action is not allowed with an API key.', 'api_key_not_allowed');
  }
  const { idVerification } = account;
  const { state, verification_failure_times: failures, max_verification_failure_times: most } = idVerification;
  if (state !== 'requested' && !(state === 'failed' && failures < most)) {
    throw refused('ID verification cannot be started.', 'id_verification_not_permitted');
  }
  idVerification.state = 'pending';
  idVerification.client_secret = `sandbox_verification_${world.nextId()}_secret`;
  idVerification.updated_at = now;
  return ok(idVerification);
}

type Rows = typeof account & typeof notification & typeof verification;

export const accountHandlers: Record<keyof Rows, Handler> = {
  getApiKey: ({ account: { apiKeys }, id }) => ok(byId(apiKeys, id)),
  createApiKey,
  listNotifications: (call) => list(call.account.notifications, call, '-created_at'),
  startIdVerification,
  getVerificationFlow: ({ account: { verificationFlows }, id }) => ok(byId(verificationFlows, id)),
};
