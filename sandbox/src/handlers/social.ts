import type { social as rows } from '../../../src/proxy-account/account.ts';
import { ok, type Answer, type OpenCall, type OpenHandler } from '../call.ts';
import { fieldRefused, fieldRefusedAsText, Refusal } from '../errors.ts';
import { checkFields } from '../input.ts';
import { operations } from '../operations.ts';
import { blankAccount } from '../seed/blank.ts';
import type { Account } from '../state.ts';

/** The document names its provider by a placeholder only, which clients may send as it is. */
const PROVIDERS = ['sandbox', '<SUPPORTED_PROVIDER>'];

/** The sandbox's identity provider: `sandbox-code-alice` proves that one is alice. */
const CODE = /^sandbox-code-([a-z0-9-]{1,64})$/;

/** Who the identity provider says it is. */
function identify({ body }: OpenCall): string {
  const { code, provider } = checkFields(operations.loginSocial.body.schema, body);
  if (!PROVIDERS.includes(provider)) throw fieldRefused('provider', 'expected sandbox', 'invalid_value');
  const name = CODE.exec(code)?.[1];
  if (name === undefined) throw invalidCode();
  return name;
}

/** A field that is itself called `code`, holding a list of texts. */
const invalidCode = () => fieldRefusedAsText('code', 'Invalid authorization code.');

function issueToken({ world }: OpenCall, account: Account): Answer {
  const token = `sandbox-token-${world.nextId()}`;
  world.credentials.set(token, { account, kind: 'dashboard' });
  return ok({ token });
}

export const socialHandlers: Record<keyof typeof rows, OpenHandler> = {
  registerSocial: (call) => {
    const { now, world } = call;
    checkFields(operations.registerSocial.body.schema, call.body);
    const name = identify(call);
    if (world.accounts.has(name)) {
      const message = 'An account with this identity already exists.';
      throw new Refusal(400, { non_field_errors: [{ message, code: 'already_registered' }] });
    }
    const account = blankAccount(name, { base: (world.accounts.size + 1) * 1000, now });
    world.accounts.set(name, account);
    return issueToken(call, account);
  },

  loginSocial: (call) => {
    const account = call.world.accounts.get(identify(call));
    if (!account) throw invalidCode();
    return issueToken(call, account);
  },
};
