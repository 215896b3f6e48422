import { once } from 'node:events';
import { createServer, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { connect } from '../../src/entry/node/redis/client.ts';
import { listenLocally } from '../support/ports.ts';
import { firstAuthority as first } from '../support/authorities.ts';
import { tlsOf } from './helpers.ts';

/** Something with TLS that notes by whose certificate, and with which name, each connection comes; and says what it was told to. */
async function startDoor(says: () => string) {
  const came: unknown[] = [];
  const options = { ...first.server, ca: first.ca, requestCert: true, rejectUnauthorized: true };
  const server = createServer(options, (socket: TLSSocket) => {
    came.push([socket.getPeerCertificate().subject.CN, socket.servername]);
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(says()));
  });
  server.on('tlsClientError', () => undefined);
  const port = await listenLocally(server);
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    await closed;
  });
  return { port, came };
}

const BY_NAME = ['first client', 'localhost'];
const BY_ADDRESS = ['first client', false];

test.each([
  ['rediss://127.0.0.1:PORT/1', [BY_ADDRESS]],
  ['rediss://localhost:PORT/1', [BY_NAME]],
  ['rediss-sentinel://127.0.0.1:PORT/main/1', [BY_ADDRESS, BY_NAME]],
  ['rediss-sentinel://localhost:PORT/main/1', [BY_NAME, BY_NAME]],
])('connections to %s show our certificate, trust our authority, and say the name', async (form, expected) => {
  const primary = (): string => `*2\r\n$9\r\nlocalhost\r\n$${String(port).length}\r\n${port}\r\n-ERR\r\n`;
  const { port, came } = await startDoor(() => (expected.length > came.length ? primary() : '-ERR no more\r\n'));
  const secured = tlsOf('STORE', { ca: first.ca, ...first.client });
  const address = storeAddressOf(form.replace('PORT', String(port))) ?? expect.fail('it is no address');
  await expect(connect({ ...address, secured })).rejects.toThrow('ERR no more');
  expect(came).toEqual(expected);
});
