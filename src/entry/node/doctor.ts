import { randomUUID } from 'node:crypto';
import { styleText } from 'node:util';
import { type Config, NO_UPSTREAM, type Variables } from '../../config.ts';
import { GatewayError } from '../../core/errors.ts';
import { parsedJson } from '../../core/json.ts';
import { checkedConfig } from '../../portico.ts';
import { proxyAccount } from '../../proxy-account/index.ts';
import { tableOf } from '../../upstream/table.ts';
import type { RawAnswer } from '../../upstream/transport.ts';
import type { Read } from './certificates.ts';
import { codeOf } from './files.ts';
import type { StoreNode } from './redis/address.ts';
import { type Connection, connectTo, fieldIn, primaryOf, troublesOf } from './redis/client.ts';
import { ID, USED_BY } from './redis/scripts.ts';
import { Trouble } from './redis/troubles.ts';
import { runtimeOf } from './runtime.ts';
import { proxyTo, type Settings, settingsIn } from './settings.ts';
import { undiciTransport } from './transport.ts';
import { BAD_CONFIG, gatherVariables, type Io, lineOf, linesOf } from './variables.ts';

/** What was found out about one thing, and what to do about it. */
type Finding = readonly [verdict: 'good' | 'poor' | 'bad', words: string, advice?: string];
type Tell = (name: string, ...finding: Finding) => void;

const COLOURS = { good: 'green', poor: 'yellow', bad: 'red' } as const;

/** What a gateway would start with. */
interface Configured {
  readonly config: Config;
  readonly settings: Settings;
  readonly key: unknown;
}

/** Reads what the start reads. `hasSandbox`: whether an upstream is started where none is configured. */
function configured(env: Variables, hasSandbox: boolean): Read<Configured> {
  const runtime = runtimeOf(gatherVariables(env));
  const checked = checkedConfig(runtime, tableOf(proxyAccount));
  const settings = settingsIn(runtime.variables);
  if ('problems' in checked) return checked;
  if ('problems' in settings) return settings;
  if (!checked.config.upstreamBaseUrl && !hasSandbox) return { problems: [NO_UPSTREAM] };
  return { data: { config: checked.config, settings: settings.data, key: runtime.variables['PORTICO_KEY'] } };
}

/** Says whether a gateway would start with this configuration, and connects nowhere. Returns the status to exit with. */
export async function check(env: Variables, { out, err }: Io, hasSandbox: boolean): Promise<number> {
  const read = configured(env, hasSandbox);
  if ('problems' in read) {
    err(linesOf(read.problems));
    return BAD_CONFIG;
  }
  out(
    `this configuration would start${read.data.config.upstreamBaseUrl ? '' : ', with the sandbox as its upstream'}\n`,
  );
  return 0;
}

/** Says of all that a gateway needs whether it is good, and what to do. Returns the status to exit with. */
export async function doctor(env: Variables, { out }: Io, hasSandbox: boolean): Promise<number> {
  let status = 0;
  const tell: Tell = (name, verdict, words, advice) => {
    const mark = styleText(COLOURS[verdict], verdict.padEnd(4));
    out(`${mark}  ${name.padEnd(13)}  ${words}${advice === undefined ? '' : `. ${advice}`}\n`);
    if (verdict === 'bad') status = 1;
  };
  const read = configured(env, hasSandbox);
  if ('problems' in read) {
    for (const problem of read.problems) tell('configuration', 'bad', lineOf(problem));
    return status;
  }
  tell('configuration', 'good', 'a gateway would start with it');
  await askUpstream(read.data, tell);
  await askStore(read.data.settings, tell);
  return status;
}

const ANSWER_MS = 3_000;

/** Asks by the gateway's own transport. The key is sent only to an upstream that asks for one. */
async function askUpstream({ config, settings, key }: Configured, tell: Tell): Promise<void> {
  const { upstreamBaseUrl: url, upstreamMaxBodyBytes: maxBodyBytes } = config;
  if (!url) {
    tell('upstream', 'good', 'UPSTREAM_BASE_URL is not set: the sandbox takes its place');
    return key === undefined ? undefined : tell('key', 'good', 'PORTICO_KEY was not tried, since there is no upstream');
  }
  const way = { tls: settings.upstreamTls, ...proxyTo(url, settings) };
  const { transport, close } = undiciTransport(url, config, way);
  const ask = (...credential: string[]) => {
    const named = { accept: 'application/json', 'user-agent': 'portico', 'x-request-id': randomUUID() };
    const headers = [...Object.entries(named).flat(), ...credential];
    const exchange = transport({ method: 'GET', path: proxyAccount.getSubscription.path, headers, maxBodyBytes });
    const late = AbortSignal.timeout(ANSWER_MS);
    late.addEventListener('abort', () => exchange.abort(late.reason));
    return exchange.answer;
  };
  const orProxy = (finding: Finding): Finding =>
    finding[0] === 'bad' && way.proxy
      ? ['bad', finding[1], `${finding[2]}. Or it is the proxy: look at HTTPS_PROXY and HTTP_PROXY`]
      : finding;
  try {
    const answered = ofAnswer(await ask());
    tell('upstream', ...orProxy(answered));
    if (answered[0] !== 'good') return;
    if (typeof key !== 'string' || key === '') tell('key', 'good', 'PORTICO_KEY is not set: none was tried');
    else if (!/^[!-~]{1,4096}$/.test(key)) tell('key', 'bad', 'PORTICO_KEY is not 1 to 4096 visible ASCII characters');
    else tell('key', ...ofKey(await ask('authorization', `Token ${key}`)));
  } catch (error) {
    tell('upstream', ...orProxy(ofFailure(error)));
  } finally {
    await close();
  }
}

/** What the answer of an upstream says that was asked without a key. */
function ofAnswer({ status, body }: RawAnswer): Finding {
  const isJson = 'text' in body && parsedJson(body.text) !== undefined;
  if (isJson && (status === 401 || status === 403)) return ['good', `asks for a key, as the API does (${status})`];
  if (status === 429) return ['poor', 'answers 429: too many requests', 'Wait, or ask why it limits this machine'];
  if (status >= 500) return ['bad', `fails with ${status}`, 'Ask whoever runs it'];
  const advice = 'Set UPSTREAM_BASE_URL to where the API is: scheme, host and path. Redirects are not followed';
  return ['bad', `answers ${status} where it should ask for a key`, advice];
}

/** What the answer to a call with the key says. Who has no subscription gets a 404. */
function ofKey({ status }: RawAnswer): Finding {
  if (status === 200 || status === 404) return ['good', 'the upstream takes PORTICO_KEY'];
  if (status === 401)
    return ['bad', 'the upstream does not know PORTICO_KEY (401)', 'Is it whole, and for this upstream?'];
  return ['bad', `with PORTICO_KEY the upstream answers ${status}`, 'Ask whoever runs it what that key may read'];
}

const UPSTREAM_ADVICE: Readonly<Record<string, string>> = {
  login: 'The proxy wants a login: put user:password@ before the host in HTTPS_PROXY or HTTP_PROXY',
  dns: 'Look at the host in UPSTREAM_BASE_URL, and at the resolver of this machine',
  refused: 'Is it running? Look at host and port in UPSTREAM_BASE_URL',
  timeout: 'A firewall may drop what is sent: look at host and port in UPSTREAM_BASE_URL',
  tls: 'Is it https:// at this port? If so, UPSTREAM_CA_FILE says whom to trust, and UPSTREAM_CERT_FILE what to show',
};

function ofFailure(error: unknown): Finding {
  const { reason = 'timeout', cause } = error instanceof GatewayError ? error.particulars : {};
  const code = codeOf(cause) === undefined ? '' : `, ${codeOf(cause)}`;
  const advice =
    UPSTREAM_ADVICE[code === ', PROXY_407' ? 'login' : reason] ??
    'Is it that scheme at this port, and is that the API?';
  return ['bad', `gives no answer (${reason}${code})`, advice];
}

async function askStore({ storeUrl, storeTls }: Settings, tell: Tell): Promise<void> {
  if (!storeUrl) return tell('store', 'good', 'STORE_URL is not set: each instance keeps its own state');
  const address = { ...storeUrl, secured: storeTls };
  const isOne = address.kind === 'one';
  const named = [];
  for (const node of address.nodes) {
    try {
      const primary = await primaryOf({ ...address, nodes: [node] });
      if (!isOne) tell('sentinel', 'good', `${textOf(node)} names ${textOf(primary)}`);
      named.push(primary);
    } catch (error) {
      tell('sentinel', ...ofTrouble(error, node));
    }
  }
  const [primary] = named;
  if (!primary) return;
  try {
    await connectTo(primary, address, (connection) => askNode(connection, tell));
  } catch (error) {
    tell('store', ...ofTrouble(error, primary));
  }
}

async function askNode(connection: Connection, tell: Tell): Promise<void> {
  const { client } = connection;
  const info = await client.info().catch(() => '');
  for (const finding of info ? ofSettings(info, await troublesOf(connection)) : []) tell('store', ...finding);
  const refused = new Set((await client.eval(TRY, 0, ...NEEDED.split(','))) as string[]);
  if (refused.size === 0) tell('store', 'good', 'its user may do what is needed');
  else tell('store', 'bad', `its user may not ${[...refused].join(', ')}`, new Trouble('NOPERM').advice);
  client.disconnect();
}

const textOf = ({ host, port }: StoreNode) => `${host}:${port}`;

function ofTrouble(error: unknown, at: StoreNode): Finding {
  const { reason, is, advice } = Trouble.of(error);
  return ['bad', `${textOf(at)} ${is} (${reason})`, advice];
}

function ofSettings(info: string, reasons: readonly string[]): readonly Finding[] {
  const [redis = '', valkey] = [fieldIn(info, 'redis_version'), fieldIn(info, 'valkey_version')];
  const version = `is ${valkey === undefined ? `Redis ${redis}` : `Valkey ${valkey}`}`;
  const isOld = Number.parseInt(redis, 10) < 7; // of Valkey too this says which Redis it is like
  const found = reasons.map((reason): Finding => {
    const { is, advice } = new Trouble(reason);
    return [reason === 'HIDDEN' ? 'poor' : 'bad', is, advice];
  });
  return [
    isOld ? ['bad', version, 'It has to be Redis 7, Valkey 8, or later'] : ['good', version],
    ...(found.length > 0 ? found : [['good', 'persists, and evicts nothing'] as const]),
  ];
}

const NEEDED =
  `EVALSHA x 1 ${ID},TIME,INFO,MGET ${ID},GET ${ID},SET ${ID} x PX 9,PTTL ${ID},PEXPIRE ${ID} 9,GETRANGE ${ID} 0 0,INCRBY ${ID} 1,DEL ${ID},` +
  `HMGET ${ID} f,HSET ${ID} f x,HGET ${USED_BY} v,HSET ${USED_BY} v 1,DEL ${USED_BY},OBJECT IDLETIME ${USED_BY}`;

/** Replies with the names of those commands that its user may not call. None is called. */
const TRY = `#!lua flags=allow-oom
local refused = {}
for _, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do table.insert(words, word) end
  if not redis.acl_check_cmd(unpack(words)) then table.insert(refused, words[1]) end
end
return refused`;
