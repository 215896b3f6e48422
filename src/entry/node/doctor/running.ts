import { once } from 'node:events';
import { connect } from 'node:net';
import type { Config } from '../../../config.ts';
import { about, codeOf, type Finding } from './findings.ts';

const { good, poor, bad } = about('gateway');

const LONGEST_MS = 3_000;

type Given = Pick<Config, 'host' | 'port' | 'adminHost' | 'adminPort'>;

/** Whether a gateway runs where this configuration has it, and takes requests. */
export async function runningFindings(config: Given): Promise<Finding[]> {
  const { host, port } = config;
  if (port === 0) return [];
  const url = `http://${inUrl(reachable(host))}:${port}`;
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(LONGEST_MS), redirect: 'manual' });
    return [verdictOf(url, answer.status, await answer.text())];
  } catch (error) {
    const code = codeOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
    if (code === 'ECONNREFUSED')
      return [good(`none runs at ${url} yet, and the port is free`), ...(await adminFindings(config))];
    return [bad(`${url}/readyz does not answer (${code})`, 'If a gateway runs there, look at its log')];
  }
}

/** Where no gateway runs, its other port has to be free too. */
async function adminFindings({ adminHost: host, adminPort: port }: Given): Promise<Finding[]> {
  if (port === 0 || !(await takesConnections(reachable(host), port))) return [];
  return [bad(`something else listens at ADMIN_PORT, ${host}:${port}`, 'A start would fail: choose another one')];
}

async function takesConnections(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(LONGEST_MS) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** An address to connect to, where one listens on all. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

const inUrl = (host: string) => (host.includes(':') ? `[${host}]` : host);

function verdictOf(url: string, status: number, body: string): Finding {
  if (status === 200 && body.includes('"ready"')) return good(`one runs at ${url} and takes requests`);
  if (status === 503) return poor(`one runs at ${url} and takes no requests (503)`, 'It is stopping or starting');
  return bad(`something else answers at ${url}`, 'Choose another PORT');
}
