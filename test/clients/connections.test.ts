import { afterAll, expect, onTestFinished, test } from 'vitest';
import { killAll, startNode } from '../runtime/node-gateway.ts';
import { openSocket, requestText } from '../support/raw-client.ts';

const DESCRIPTORS = 300;
const PROBE = requestText({ target: '/livez' });

afterAll(killAll);

test('beyond what the process may have, connections are closed at once, and those that are there go on', async () => {
  const limited = ['sh', '-c', `ulimit -n ${DESCRIPTORS}; exec "$@"`, 'sh'];
  const gateway = await startNode({ ADMIN_PORT: '0', UPSTREAM_BASE_URL: 'http://127.0.0.1:1' }, limited);
  const known = await openSocket(gateway.port);
  const sockets = await Promise.all(Array.from({ length: DESCRIPTORS }, () => openSocket(gateway.port)));
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.race(sockets.map(({ closed }) => closed));
  await known.write(PROBE);
  expect((await known.readResponse()).status).toBe(200);
  known.destroy();
  expect(gateway.stderr()).toBe('');
});
