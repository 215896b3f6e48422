import { GatewayError } from '../core/errors.ts';

const AUTHORIZATION = /^(?:token|bearer) +([\x21-\x7e]{1,4096})$/i;

/**
 * The key of `Authorization: Token <key>` or `Bearer <key>` (`contract.md` section 3). Two such headers arrive joined
 * with a comma and a space, which no key can hold.
 * @throws GatewayError `unauthenticated`
 */
export function credentialOf(authorization: string | undefined): string {
  const key = authorization === undefined ? undefined : AUTHORIZATION.exec(authorization)?.[1];
  if (key === undefined) throw GatewayError.of('unauthenticated', { headers: { 'WWW-Authenticate': 'Token' } });
  return key;
}
