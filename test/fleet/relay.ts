import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type ScriptName, SCRIPTS } from '../../src/entry/node/redis/scripts.ts';
import { type Barrier, barrier } from '../support/barrier.ts';
import { listenLocally } from '../support/ports.ts';

/** Passes bytes to a server, and may keep some back, or pass them to another server. */
export interface Relay {
  readonly port: number;
  /** The scripts that were called, in the order in which they went on. */
  readonly scripts: readonly ScriptName[];
  /** What comes with this text in it is kept back, and all behind it, until the barrier is released. */
  freezeAt(text: string): Barrier;
  /** The same, and what comes behind it on its connection is lost. */
  freezeAlone(text: string): Barrier;
  /** Cuts all connections; new ones lead to this port. */
  leadTo(port: number): void;
  /** What is still kept back is lost. */
  close(): Promise<void>;
}

/** What a command that runs a script has in it. */
export const shaOf = (name: ScriptName): string => createHash('sha1').update(SCRIPTS[name]).digest('hex');

const names = new Map((Object.keys(SCRIPTS) as ScriptName[]).map((name) => [shaOf(name), name]));

const SHA_LENGTH = 40;
const CALL = /\r\n\$40\r\n([0-9a-f]{40})\r\n/g;

/** Finds the scripts that are called in what goes by, wherever it is cut into chunks. */
function scriptsIn(found: ScriptName[]): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const text = rest + chunk;
    const calls = [...text.matchAll(CALL)];
    for (const [, sha = ''] of calls) {
      const name = names.get(sha);
      if (name) found.push(name);
    }
    const last = calls.at(-1);
    rest = text.slice(Math.max(last ? last.index + last[0].length - 2 : 0, text.length - SHA_LENGTH - 8));
  };
}

async function passOn(before: Promise<void>, at: Barrier | undefined, act: () => unknown): Promise<void> {
  await before;
  await at?.arrive();
  act();
}

export async function startRelay(behind: number): Promise<Relay> {
  const open = new Set<Socket>();
  const frozen: { readonly text: string; readonly gate: Barrier; readonly isAlone: boolean }[] = [];
  const scripts: ScriptName[] = [];
  let target = behind;

  const server = createServer({ noDelay: true }, (from) => {
    const to = connect({ port: target, host: '127.0.0.1', noDelay: true });
    const note = scriptsIn(scripts);
    let before = Promise.resolve();
    let isSilent = false;
    for (const socket of [from, to]) {
      open.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => open.delete(socket));
    }
    from.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      if (isSilent) return;
      const at = frozen.find((one) => text.includes(one.text));
      isSilent = at?.isAlone ?? false;
      before = passOn(before, at?.gate, () => {
        note(text);
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
  const freeze = (text: string, isAlone: boolean) => {
    const gate = barrier();
    frozen.unshift({ text, gate, isAlone });
    return gate;
  };
  return {
    port,
    scripts,
    freezeAt: (text) => freeze(text, false),
    freezeAlone: (text) => freeze(text, true),
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
