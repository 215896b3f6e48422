import type { Config } from '../../../config.ts';
import { about, codeOf, type Finding } from './findings.ts';

const { good, poor, bad } = about('gateway');

const LONGEST_MS = 3_000;

/** Whether a gateway runs where this configuration has it, and takes requests. */
export async function runningFindings({ host, port }: Pick<Config, 'host' | 'port'>): Promise<Finding[]> {
  if (port === 0) return [];
  const url = `http://${reachable(host)}:${port}`;
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(LONGEST_MS), redirect: 'manual' });
    return [verdictOf(url, answer.status, await answer.text())];
  } catch (error) {
    const code = codeOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
    if (code === 'ECONNREFUSED') return [good(`none runs at ${url} yet, and the port is free`)];
    return [bad(`${url}/readyz does not answer (${code})`, 'If a gateway runs there, look at its log')];
  }
}

/** An address to connect to, where one listens on all. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function verdictOf(url: string, status: number, body: string): Finding {
  if (status === 200 && body.includes('"ready"')) return good(`one runs at ${url} and takes requests`);
  if (status === 503) return poor(`one runs at ${url} and takes no requests (503)`, 'It is stopping or starting');
  return bad(`something else answers at ${url}`, 'Choose another PORT');
}
