import { killAll, startNode } from './node-gateway.ts';

/** Fills the compile cache that every process of the tests reads: one that is killed leaves nothing in it. */
export async function setup(): Promise<void> {
  const gateway = await startNode({ ADMIN_PORT: '0' });
  gateway.signal('SIGTERM');
  await gateway.exited;
  await killAll();
}
