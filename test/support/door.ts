import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenLocally } from './ports.ts';
import { startBlackhole } from './blackhole.ts';

/** An address in front of a server, where connections come about or not, as a test says. */
export interface Door {
  readonly url: string;
  /** Connections reach the server behind, as they do from the start. */
  open(): Promise<void>;
  /** Connections are refused, and those there were are gone. */
  shut(): Promise<void>;
  /** Nobody answers those who knock. */
  blackhole(): Promise<void>;
}

export async function openDoor(serverUrl: string): Promise<Door> {
  const behind = Number(new URL(serverUrl).port);
  const passing = new Set<Socket>();
  let server: Server | undefined;
  let hole: { close(): Promise<void> } | undefined;
  let port = 0;

  const pass = (from: Socket) => {
    const to = connect(behind, '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      passing.add(one);
      one.pipe(other);
      one.on('error', () => {});
      one.once('close', () => {
        passing.delete(one);
        other.destroy();
      });
    }
  };

  const shut = async () => {
    await hole?.close();
    hole = undefined;
    const closed = server?.listening && once(server, 'close');
    server?.close();
    for (const socket of passing) socket.destroy();
    await closed;
  };

  const open = async () => {
    await shut();
    server = createServer({ noDelay: true }, pass);
    port = await listenLocally(server, port);
  };

  const blackhole = async () => {
    await shut();
    hole = await startBlackhole(port);
  };

  await open();
  return { url: `http://127.0.0.1:${port}`, open, shut, blackhole };
}
