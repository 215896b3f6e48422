import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenLocally } from './ports.ts';

/** A sentinel that always names the same primary, when the test wants it. */
export interface ScriptedSentinel {
  readonly url: string;
  /** How many have asked for the primary. */
  readonly asked: () => number;
  /** How many listen for news. */
  readonly listening: () => number;
  /** The next one who asks for the primary is told the news of another first, as all are who listen, and waits for its reply. */
  tellWhileAsked(): void;
  close(): Promise<void>;
}

const NAME = 'portico';
/** Longer than news take to be heard. */
const HELD_MS = 200;

const text = (value: string) => `$${Buffer.byteLength(value)}\r\n${value}\r\n`;
const list = (...values: string[]) => `*${values.length}\r\n${values.map(text).join('')}`;
const SUBSCRIBED = `*3\r\n${text('subscribe')}${text('+switch-master')}:1\r\n`;

export async function startScriptedSentinel(primaryPort: number): Promise<ScriptedSentinel> {
  const sockets = new Set<Socket>();
  const listeners = new Set<Socket>();
  let asked = 0;
  let isTelling = false;
  const tell = () => {
    isTelling = false;
    const news = `${NAME} 127.0.0.1 1 127.0.0.1 ${primaryPort}`;
    for (const socket of listeners) socket.write(list('message', '+switch-master', news));
  };
  const replyOn = async (socket: Socket, [name, first]: readonly string[]): Promise<string> => {
    if (name === 'subscribe') listeners.add(socket);
    if (name === 'subscribe') return SUBSCRIBED;
    if (name !== 'sentinel') return '+OK\r\n';
    if (first !== 'get-master-addr-by-name') return list();
    asked++;
    if (isTelling) {
      tell();
      await sleep(HELD_MS);
    }
    return list('127.0.0.1', String(primaryPort));
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      listeners.delete(socket);
    });
    let [unread, replied] = ['', Promise.resolve()];
    socket.on('data', (chunk) => {
      const [commands, rest] = commandsIn(`${unread}${chunk.toString()}`);
      unread = rest;
      for (const command of commands)
        replied = replied.then(async () => void socket.write(await replyOn(socket, command)));
    });
  });
  const port = await listenLocally(server);
  return {
    url: `redis-sentinel://127.0.0.1:${port}/${NAME}`,
    asked: () => asked,
    listening: () => listeners.size,
    tellWhileAsked: () => void (isTelling = true),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** All whole commands, and what is left. */
function commandsIn(received: string): [commands: string[][], rest: string] {
  const commands: string[][] = [];
  let rest = received;
  for (;;) {
    const count = Number(/^\*(\d+)\r\n/.exec(rest)?.[1] ?? NaN);
    const command = new RegExp(String.raw`^\*\d+\r\n(?:\$\d+\r\n[^\r]*\r\n){${count || 1}}`).exec(rest)?.[0];
    if (!command) return [commands, rest];
    commands.push(command.split('\r\n').filter((_, i) => i > 0 && i % 2 === 0));
    rest = rest.slice(command.length);
  }
}
