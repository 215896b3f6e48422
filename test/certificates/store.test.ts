import { once } from 'node:events';
import { createServer, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test, vi } from 'vitest';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { clientOf } from '../../src/entry/node/redis/client.ts';
import { listenLocally } from '../support/ports.ts';
import { firstAuthority as first } from '../support/authorities.ts';
import { tlsOf } from './helpers.ts';

/** Something with TLS that closes each connection at once, and notes by whose certificate it came. */
async function startDoor() {
  const shown: unknown[] = [];
  const options = { ...first.server, ca: first.ca, requestCert: true, rejectUnauthorized: true };
  const server = createServer(options, (socket: TLSSocket) => {
    shown.push(socket.getPeerCertificate().subject.CN);
    socket.on('error', () => undefined).destroy();
  });
  server.on('tlsClientError', () => undefined);
  const port = await listenLocally(server);
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    await closed;
  });
  return { port, shown };
}

test.each(['rediss://127.0.0.1:PORT', 'rediss-sentinel://127.0.0.1:PORT/main', 'rediss-cluster://127.0.0.1:PORT'])(
  'a connection to %s shows our certificate, and trusts our authority',
  async (form) => {
    const { port, shown } = await startDoor();
    const secured = tlsOf('STORE', { ca: first.ca, ...first.client });
    const address = storeAddressOf(form.replace('PORT', String(port))) ?? expect.fail('it is no address');
    const client = clientOf({ ...address, secured });
    onTestFinished(() => client.disconnect());
    client.on('error', () => undefined);
    client.connect().catch(() => undefined);
    await vi.waitFor(() => expect(shown).toContain('first client'));
  },
);
