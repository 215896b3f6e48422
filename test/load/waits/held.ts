import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Requests whose answers are waited for, each on a connection of its own. */
export class Held {
  readonly statuses: number[] = [];
  readonly #sockets: Socket[] = [];

  async ask(url: string, path: string, headers: Readonly<Record<string, string>>): Promise<void> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => this.#read(data.toString('latin1')));
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\n${lines.join('')}\r\n`);
    this.#sockets.push(socket);
  }

  /** Leaves, without an answer. */
  leave(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #read(data: string): void {
    if (data.startsWith('HTTP/1.1 ')) this.statuses.push(Number(data.slice(9, 12)));
  }
}
