import { forbidden, Refusal } from './errors.ts';
import type { Account, Credential, World } from './state.ts';

const REFUSALS: Readonly<Record<NonNullable<Account['refusal']>, string>> = {
  account_suspended: 'Your account has been suspended.',
  '2fa_needed': 'Two-factor authentication is needed.',
};

/** The credential of a request; undefined where it has none, or an unknown one. */
export function credentialOf(world: World, request: Request): Credential | undefined {
  const [, key = ''] = /^Token +(\S+)$/i.exec(request.headers.get('Authorization') ?? '') ?? [];
  return world.credentials.get(key);
}

/** Refuses a call without a known credential, and every call of an account with a `refusal`. */
export function authenticate(world: World, request: Request): Credential {
  const credential = credentialOf(world, request);
  if (!credential) {
    const detail = 'Authentication credentials were not provided, or are unknown.';
    throw new Refusal(401, { detail, code: 'authentication_failed' }, { 'WWW-Authenticate': 'Token' });
  }
  const { refusal } = credential.account;
  if (refusal) throw forbidden(REFUSALS[refusal], refusal);
  return credential;
}
