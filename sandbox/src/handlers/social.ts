import * as z from 'zod';
import type { social as rows } from '../../../src/proxy-account/account.ts';
import { checkFields } from '../body.ts';
import { ok, type Answer, type OpenCall, type OpenHandler } from '../call.ts';
import { fieldRefusedAsText, Refusal } from '../errors.ts';
import { newAccount } from '../seed/blank.ts';
import type { Account } from '../state.ts';

/** The document names its provider by a placeholder only, which clients may send as it is. */
const PROVIDERS = ['sandbox', '<SUPPORTED_PROVIDER>'];

/** The sandbox's identity provider: `sandbox-code-alice` proves that one is alice. */
const CODE = /^sandbox-code-([a-z0-9-]{1,64})$/;

const text = z.string().min(1);

const login = z.looseObject({ provider: text.pipe(z.enum(PROVIDERS)), code: text, redirect_uri: text });

const registration = login.extend({
  tos_accepted: z.literal(true),
  marketing_email_accepted: z.boolean().default(false),
});

/** Who the identity provider says it is. */
function identify({ code, redirect_uri: redirectUri }: z.infer<typeof login>): string {
  if (!/^https?:/.test(redirectUri) || !URL.canParse(redirectUri)) {
    throw new Refusal(400, { non_field_errors: ['The redirect URI is not authorized with the provider.'] });
  }
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
    const name = identify(checkFields(registration, call.body));
    if (call.world.accounts.has(name)) {
      const message = 'An account with this identity already exists.';
      throw new Refusal(400, { non_field_errors: [{ message, code: 'already_registered' }] });
    }
    const account = newAccount(name, call.now, call.world.nextId);
    call.world.accounts.set(name, account);
    return issueToken(call, account);
  },

  loginSocial: (call) => {
    const account = call.world.accounts.get(identify(checkFields(login, call.body)));
    if (!account) throw invalidCode();
    return issueToken(call, account);
  },
};
