import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { ID, TOKEN } from '../../src/entry/node/redis/scripts.ts';
import { type Barrier, barrier } from '../support/barrier.ts';
import { listenLocally } from '../support/ports.ts';

/** What a gateway asks its store. */
type Asked = 'hello' | 'read' | 'swap' | 'keep' | 'count';

interface Freezing {
  /** What comes with this in it is kept back, and all behind it on its connection, until the barrier is released. */
  readonly at: RegExp;
  /** So many of them pass before. */
  readonly skip?: number;
  /** Those after the first one pass. */
  readonly isOnce?: boolean;
  /** What comes behind it on its connection is lost. */
  readonly isAlone?: boolean;
}

/** Passes bytes to a server, and may keep some back, or pass them to another server. */
export interface Relay {
  readonly port: number;
  /** What a store behind it was asked, in the order in which it went on. */
  readonly asked: readonly Asked[];
  freeze(freezing: Freezing): Barrier;
  /** Cuts all connections; new ones lead to this port. */
  leadTo(port: number): void;
  /** What is still kept back is lost. */
  close(): Promise<void>;
}

/** A note in the place of another one: how writes begin and end. */
export const SWAP = new RegExp(`evalsha\r\n[^:]+\r\n${ID}\r\n[$]\\d+\r\np\\d+:[^\r]+:note\r\n`, 'i');

function askedBy([name = '', , , first = '', second = '']: readonly string[]): Asked | undefined {
  if (name === 'mget') return 'read';
  if (name === 'incrby') return 'count';
  if (name !== 'evalsha') return undefined; // where the store does not know the script, its text follows
  if (first !== ID) return 'keep';
  return second === TOKEN ? 'hello' : 'swap';
}

/** Finds the commands in what goes by, wherever it is cut into chunks. */
function commandsIn(found: (command: readonly string[]) => void): (chunk: string) => void {
  let rest = '';
  /** The number behind the sign at this place, and where its line ends. */
  const numberAt = (at: number) => {
    const end = rest.indexOf('\r\n', at);
    return end === -1 ? undefined : { number: Number(rest.slice(at + 1, end)), end: end + 2 };
  };
  const next = () => {
    const head = numberAt(0);
    if (!head) return undefined;
    let { end } = head;
    const parts: string[] = [];
    while (parts.length < head.number) {
      const length = numberAt(end);
      if (!length || rest.length < length.end + length.number + 2) return undefined;
      parts.push(rest.slice(length.end, length.end + length.number));
      end = length.end + length.number + 2;
    }
    rest = rest.slice(end);
    return parts;
  };
  return (chunk) => {
    rest += chunk;
    for (let command = next(); command; command = next()) found([command[0]?.toLowerCase() ?? '', ...command.slice(1)]);
  };
}

async function passOn(before: Promise<void>, at: Barrier | undefined, act: () => unknown): Promise<void> {
  await before;
  await at?.arrive();
  act();
}

export async function startRelay(behind: number): Promise<Relay> {
  const open = new Set<Socket>();
  const frozen: (Freezing & { readonly gate: Barrier; seen: number })[] = [];
  const asked: Asked[] = [];
  let target = behind;

  /** What keeps this back. */
  const stopOf = (text: string) =>
    frozen.find((one) => {
      if (!one.at.test(text)) return false;
      const { skip = 0 } = one;
      one.seen++;
      return one.isOnce ? one.seen === skip + 1 : one.seen > skip;
    });

  const server = createServer({ noDelay: true }, (from) => {
    const to = connect({ port: target, host: '127.0.0.1', noDelay: true });
    const look = commandsIn((command) => {
      const what = askedBy(command);
      if (what) asked.push(what);
    });
    let before = Promise.resolve();
    let isSilent = false;
    for (const socket of [from, to]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => open.delete(socket));
    }
    from.on('data', (chunk: Buffer) => {
      if (isSilent) return;
      const text = chunk.toString('latin1');
      const stop = stopOf(text);
      isSilent = stop?.isAlone ?? false;
      before = passOn(before, stop?.gate, () => {
        look(text);
        to.write(chunk);
      });
    });
    from.once('close', () => void passOn(before, undefined, () => to.end()));
    to.on('data', (chunk) => void from.write(chunk));
    to.once('close', () => from.destroy());
  });
  const port = await listenLocally(server);
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  return {
    port,
    asked,
    freeze(freezing) {
      const gate = barrier();
      frozen.unshift({ ...freezing, gate, seen: 0 });
      return gate;
    },
    leadTo(other) {
      target = other;
      cut();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}
