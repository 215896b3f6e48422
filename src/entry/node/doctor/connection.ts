import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, TLSSocket } from 'node:tls';
import { certificateFindings, type Shown } from './certificate.ts';
import { about, codeOf, type Finding } from './findings.ts';
import { hostIn, isLoopback } from './name.ts';

const { good, poor, bad } = about('upstream');

const LONGEST_MS = 4_000;

/** Whether the upstream takes connections, and proves who it is. */
export async function connectionFindings(upstream: URL, secureContext?: SecureContext): Promise<Finding[]> {
  const host = hostIn(upstream);
  const port = Number(upstream.port) || (upstream.protocol === 'https:' ? 443 : 80);
  const socket = upstream.protocol === 'https:' ? secured(host, port, secureContext) : connect({ host, port });
  try {
    const signal = AbortSignal.timeout(LONGEST_MS);
    await once(socket, socket instanceof TLSSocket ? 'secureConnect' : 'connect', { signal });
    return socket instanceof TLSSocket ? certificateFindings(shownBy(socket), host) : plain(socket, host, port);
  } catch (error) {
    return [failed(codeOf(error), `${host}:${port}`)];
  } finally {
    socket.destroy();
  }
}

/** Whatever it shows is looked at: nothing is sent over this connection. */
const secured = (host: string, port: number, secureContext?: SecureContext) =>
  connectTls({ secureContext, host, port, rejectUnauthorized: false, ...(!isIP(host) && { servername: host }) });

const shownBy = (socket: TLSSocket): Shown => ({
  certificate: socket.getPeerCertificate(true),
  // A code, other than its type says.
  error: socket.authorized ? undefined : String(socket.authorizationError),
});

function plain({ remoteAddress = '' }: Socket, host: string, port: number): Finding[] {
  if (isLoopback(remoteAddress)) return [good(`takes connections at ${host}:${port}`)];
  return [
    poor(`http:// to ${host}: keys go unencrypted to another machine`, 'Use https:// unless the network is yours'),
  ];
}

function failed(code: string, at: string): Finding {
  if (code === 'ECONNREFUSED')
    return bad(`${at} refuses connections`, 'Is it running? Look at host and port of UPSTREAM_BASE_URL');
  if (code === 'ABORT_ERR' || code === 'ETIMEDOUT')
    return bad(
      `${at} does not answer a connection`,
      'A firewall may drop it: look at host and port of UPSTREAM_BASE_URL, and at rules for outgoing connections',
    );
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO')
    return bad(`${at} does not speak TLS as we do (${code})`, 'Is it http:// at this port?');
  return bad(`${at} cannot be reached (${code})`, 'Look at UPSTREAM_BASE_URL and at the network of this machine');
}
