import { once } from 'node:events';
import { createServer } from 'node:net';

/** For a process, which listens on it soon. Throws if it has to be a certain one, and that is taken. */
export async function freePort(wanted = 0): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
