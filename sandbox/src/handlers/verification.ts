import type { verification as rows } from '../../../src/proxy-account/account.ts';
import { byId, ok, type Answer, type Call, type Handler } from '../call.ts';
import { forbidden, refused } from '../errors.ts';
import type { IdVerification } from '../resources/account.ts';

/** The state table of the document. A person has to do it, hence not with a key that endpoint 2 made. */
function startIdVerification({ account, credential, now, world }: Call): Answer {
  if (credential.kind === 'programmatic') {
    throw forbidden('This action is not allowed with an API key.', 'api_key_not_allowed');
  }
  const { idVerification } = account;
  if (!mayStart(idVerification)) {
    throw refused('ID verification cannot be started.', 'id_verification_not_permitted');
  }
  idVerification.state = 'pending';
  idVerification.client_secret = `sandbox_verification_${world.nextId()}_secret`;
  idVerification.updated_at = now;
  return ok(idVerification);
}

function mayStart(verification: IdVerification): boolean {
  if (verification.state === 'requested') return true;
  const { verification_failure_times: failures, max_verification_failure_times: most } = verification;
  return verification.state === 'failed' && failures < most;
}

export const verificationHandlers: Record<keyof typeof rows, Handler> = {
  startIdVerification,
  getVerificationFlow: ({ account, id }) => ok(byId(account.verificationFlows, id)),
};
