import { forbidden, unauthenticated } from './errors.ts';
import type { Account, Credential, World } from './state.ts';

const TOKEN = /^Token +(\S+)$/i;

const REFUSALS: Readonly<Record<NonNullable<Account['refusal']>, string>> = {
  account_suspended: 'Your account has been suspended.',
  '2fa_needed': 'Two-factor authentication is needed.',
};

/** The credential of a request; `null` where it has none, or an unknown one. */
export function credentialOf(world: World, request: Request): Credential | null {
  const key = TOKEN.exec(request.headers.get('Authorization') ?? '')?.[1];
  return (key !== undefined && world.credentials.get(key)) || null;
}

/** Refuses a call without a known credential, and every call of an account with a `refusal`. */
export function authenticate(world: World, request: Request): Credential {
  if (!/^Token /i.test(request.headers.get('Authorization') ?? '')) {
    throw unauthenticated('Authentication credentials were not provided.', 'not_authenticated');
  }
  const credential = credentialOf(world, request);
  if (!credential) throw unauthenticated('Invalid token.', 'authentication_failed');
  const { refusal } = credential.account;
  if (refusal) throw forbidden(REFUSALS[refusal], refusal);
  return credential;
}
