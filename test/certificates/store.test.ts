import { once } from 'node:events';
import { createServer, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test, vi } from 'vitest';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { WatchedTls } from '../../src/entry/node/certificates.ts';
import { clientOf } from '../../src/entry/node/redis/client.ts';
import { listenLocally } from '../support/ports.ts';
import { firstAuthority as first, secondAuthority as second } from '../support/authorities.ts';
import { keepingLogger } from '../support/gateway.ts';
import { folderWith } from './helpers.ts';

/** Something with TLS that closes each connection at once, and notes by whose certificate it came. */
async function startDoor() {
  const shown: unknown[] = [];
  const options = { ...first.server, ca: first.ca + second.ca, requestCert: true, rejectUnauthorized: true };
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

const refuse = (problems: unknown): never => {
  throw new Error(JSON.stringify(problems));
};

test.each(['rediss://127.0.0.1:PORT', 'rediss-sentinel://127.0.0.1:PORT/main', 'rediss-cluster://127.0.0.1:PORT'])(
  'each connection to %s shows what the files hold when it is made',
  async (form) => {
    const { port, shown } = await startDoor();
    const { files, swap } = folderWith({ ca: first.ca, cert: first.client.cert, key: first.client.key });
    const secured = new WatchedTls('STORE', files, { logger: keepingLogger([]), refuse, everyMs: 5 });
    onTestFinished(() => secured.close());
    const address = storeAddressOf(form.replace('PORT', String(port))) ?? expect.fail('it is no address');
    const client = clientOf({ ...address, secured });
    onTestFinished(() => client.disconnect());
    client.on('error', () => undefined);
    client.connect().catch(() => undefined);
    await vi.waitFor(() => expect(shown).toContain('first client'));
    swap({ ca: first.ca, cert: second.client.cert, key: second.client.key });
    await vi.waitFor(() => expect(shown.at(-1)).toBe('second client'), { timeout: 20_000 });
  },
);
