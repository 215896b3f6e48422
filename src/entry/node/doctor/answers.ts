import { isPlainObject, parsedJson } from '../../../core/json.ts';
import { headerOf } from '../../../upstream/transport.ts';
import { about, type Finding, isBad } from './findings.ts';
import type { Asked, Failure, Probe } from './probe.ts';

const { good, poor, bad } = about('upstream');

/** To whoever has no key. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403]);

const TRIES = 5;
const FAR_MS = 100;
const MOST_SKEW_MS = 5_000;

export interface Answers {
  readonly findings: Finding[];
  /** It answers 401 or 403 to whoever has none. */
  readonly asksForKey: boolean;
}

/** How the upstream answers whoever has no key: whether it is the account API, how far it is, and its clock. */
export async function answerFindings(probe: Probe): Promise<Answers> {
  const [read] = probe.reads;
  if (!read) return { findings: [], asksForKey: false };
  const first = await probe.ask(read);
  if ('reason' in first) return { findings: [silent(first, probe)], asksForKey: false };
  const answered = answerFinding(first, probe.upstream.href.replace(/\/$/, '') + read.path);
  const findings = [...(probe.proxy ? [good(`goes by the proxy ${probe.proxy.host}`)] : []), answered];
  if (isBad(answered)) return { findings, asksForKey: false };
  const times: number[] = [];
  for (let tried = 0; tried < TRIES; tried++) {
    const again = await probe.ask(read);
    if (!('reason' in again)) times.push(again.ms);
  }
  findings.push(...distance(times, probe.timeoutMs), ...clock(first));
  return { findings, asksForKey: REFUSALS.has(first.status) };
}

function silent({ reason, ofProxy }: Failure, { upstream, proxy }: Probe): Finding {
  if (proxy && ofProxy !== undefined) {
    const refuses = Number.isInteger(Number(ofProxy)); // a status
    const words = `the proxy ${proxy.host} ${refuses ? 'refuses' : 'cannot be reached'} (${ofProxy})`;
    return bad(words, 'Look at HTTPS_PROXY and HTTP_PROXY');
  }
  const by = proxy ? ` by the proxy ${proxy.host}` : '';
  const advice = (upstream.protocol === 'http:' ? IN_PLAIN : IN_TLS)[reason] ?? 'Is that the API, and is it well?';
  return bad(`no answer that can be used${by} (${reason})`, advice);
}

const IN_PLAIN: Readonly<Record<string, string>> = {
  reset: 'Is it https:// at this port?',
  tls: 'Is it https:// at this port?',
};

const IN_TLS: Readonly<Record<string, string>> = {
  reset: 'It may want a certificate of ours: UPSTREAM_CERT_FILE', // it may close before its alert is read
  tls: 'It may want a certificate of ours: UPSTREAM_CERT_FILE. Or its own is not trusted: UPSTREAM_CA_FILE',
};

function answerFinding(answer: Asked, url: string): Finding {
  const { status, body } = answer;
  const value = 'text' in body ? parsedJson(body.text) : undefined;
  const wrongUrl = 'Look at host and path of UPSTREAM_BASE_URL';
  if (isOurs(value))
    return bad(`${url} is a Portico's`, 'UPSTREAM_BASE_URL is to be the upstream itself, or the gateway calls itself');
  if (status >= 300 && status < 400)
    return bad(
      `redirects to ${placeIn(answer)}`,
      'Redirects are not followed: set UPSTREAM_BASE_URL to where the API is',
    );
  if (status === 404) return bad(`has nothing at ${url} (404)`, 'UPSTREAM_BASE_URL has a wrong path, or a wrong host');
  if (status === 429) return poor('answers 429: too many requests', 'Wait, or ask why it limits this machine');
  if (status >= 500) return bad(`fails with ${status}`, 'Ask whoever runs it');
  if (value === undefined) return bad(`answers with ${typeOf(answer)} and ${status} where JSON is expected`, wrongUrl);
  if (REFUSALS.has(status)) return good(`asks for a key, as the API does (${status} at ${url})`);
  return bad(`answers ${status} where it should ask for a key`, wrongUrl);
}

/** A problem of a gateway's own. */
const isOurs = (value: unknown) =>
  isPlainObject(value) && ['type', 'code', 'request_id', 'retryable'].every((member) => member in value);

/** Without what follows the path, which might hold anything. */
function placeIn(answer: Asked): string {
  const location = URL.parse(headerOf(answer, 'location') ?? '');
  return location ? location.origin + location.pathname : 'another path';
}

const typeOf = (answer: Asked) => headerOf(answer, 'content-type')?.split(';', 1)[0] ?? 'a body of no type';

/** The least of several: what others take longer is not the way. */
function distance(times: readonly number[], timeoutMs: number): Finding[] {
  if (times.length === 0) return [];
  const ms = Math.min(...times);
  const text = `answers in ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms (the least of ${times.length})`;
  if (ms <= FAR_MS) return [good(text)];
  return [poor(text, `Run the gateway nearer to it. A call has UPSTREAM_TIMEOUT_MS (${timeoutMs}) in all`)];
}

/** `Date` is in whole seconds. */
function clock(answer: Asked): Finding[] {
  const date = Date.parse(headerOf(answer, 'date') ?? '');
  const ahead = date + 500 - (Date.now() - answer.ms / 2);
  if (Number.isNaN(ahead) || Math.abs(ahead) <= MOST_SKEW_MS) return [];
  const words = `${Math.round(Math.abs(ahead) / 1_000)} s ${ahead > 0 ? 'ahead of' : 'behind'} ours`;
  return [poor(`its clock is ${words}`, 'Look at the clock of this machine: certificates and sessions go by it')];
}
