import type { Logger } from '../core/logger.ts';
import { andThen, type Soon } from '../core/runtime.ts';
import type { Prepare, Prepared, UpstreamCall } from '../upstream/call.ts';
import { checkHeaders } from '../upstream/hook-headers.ts';
import { type Credential, type FurtherHeaders, ownHeadersOf } from '../upstream/hooks.ts';
import { concealableIn } from '../upstream/refusal.ts';
import type { GatewayDeps } from './deps.ts';
import { Exchanges, faultOfHook } from './exchanges.ts';

/** Says what a call of the upstream sends of the credential and by hooks. */
export function preparing({ hooks = {}, clock, logger }: Pick<GatewayDeps, 'hooks' | 'clock' | 'logger'>): Prepare {
  const { credential = 'Token', headers } = hooks;
  const exchanges = typeof credential === 'function' ? new Exchanges(credential, { clock, logger }) : undefined;
  const keyed = exchanges ? (call: UpstreamCall) => exchanges.prepare(call) : sendingKey(credential);
  const own: Prepare = (call) => (call.operation.credential === 'none' ? NOTHING : keyed(call));
  if (headers === undefined) return exchanges ? once(own) : own;
  const add = adding(headers, credential, logger);
  return once((call) => andThen(own(call), (prepared) => add(call, prepared)));
}

const NOTHING: Prepared = { headers: [], secrets: [] };

function sendingKey(credential: Credential): Prepare {
  const [name, scheme] =
    typeof credential === 'object'
      ? [credential.header.toLowerCase(), '']
      : ['authorization', `${String(credential)} `];
  return ({ context: { credential: key } }) => ({ headers: [name, scheme + key], secrets: [key] });
}

/** A call that is tried again is prepared once, unless what it sends is refused. */
function once(prepare: Prepare): Prepare {
  const known = new WeakMap<UpstreamCall, Soon<Prepared>>();
  return (call, isAnew) => {
    const prepared = (!isAnew && known.get(call)) || prepare(call);
    known.set(call, prepared);
    return prepared;
  };
}

/** What is as long may be a key or a signature; anything shorter in such a header is a word. */
const KEY_LENGTH = 16;

/** @throws GatewayError `internal_error` for headers that the hook may not set, or if it throws; logged here */
function adding(headers: FurtherHeaders, credential: Credential, logger: Logger) {
  const givenFor = typeof headers === 'function' ? headers : () => headers;
  return ({ operation: { id, method, path }, context }: UpstreamCall, prepared: Prepared): Prepared => {
    const taken = [...ownHeadersOf(credential), ...prepared.headers.filter((_, at) => at % 2 === 0)];
    try {
      const further = checkHeaders('`headers`', givenFor({ id, method, path }), taken);
      const long = concealableIn(further).filter(({ length }) => length >= KEY_LENGTH);
      const secrets = [...prepared.secrets, ...long];
      return { ...prepared, headers: [...prepared.headers, ...further], secrets };
    } catch (error) {
      throw faultOfHook('headers', error, { logger, context });
    }
  };
}
