import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type Barrier, barrier } from '../support/barrier.ts';

/** Stands before a server and lets bytes through, until it is told to keep some back. */
export interface Relay {
  readonly port: number;
  /** Resolves when the first connection has come, before anything of it goes on. */
  readonly connected: Promise<void>;
  /** What comes with this text in it is kept back, and all behind it, until the barrier is released. */
  freezeAt(text: string): Barrier;
  /** What is still kept back is lost. */
  close(): Promise<void>;
}

async function passOn(before: Promise<void>, at: Barrier | undefined, act: () => unknown): Promise<void> {
  await before;
  await at?.arrive();
  act();
}

export async function startRelay(behind: number): Promise<Relay> {
  const open = new Set<Socket>();
  const connected = Promise.withResolvers<void>();
  let frozen: { readonly text: string; readonly gate: Barrier } | undefined;

  const server = createServer({ noDelay: true }, (from) => {
    connected.resolve();
    const to = connect({ port: behind, host: '127.0.0.1', noDelay: true });
    let before = Promise.resolve();
    for (const socket of [from, to]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => open.delete(socket));
    }
    from.on('data', (chunk: Buffer) => {
      const at = frozen && chunk.toString('latin1').includes(frozen.text) ? frozen.gate : undefined;
      before = passOn(before, at, () => to.write(chunk));
    });
    from.once('close', () => void passOn(before, undefined, () => to.end()));
    to.on('data', (chunk) => void from.write(chunk));
    to.once('close', () => from.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    connected: connected.promise,
    freezeAt(text) {
      const gate = barrier();
      frozen = { text, gate };
      return gate;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
