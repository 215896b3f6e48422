import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { listenLocally } from '../support/ports.ts';
import { ROOT, run } from '../runtime/node-gateway.ts';

const ENTRY = join(ROOT, 'src/entry/node.ts');

type Env = Readonly<Record<string, string>>;

/** Runs the gateway's program with words after its name. */
export async function program(words: readonly string[], env: Env = {}) {
  const running = run({ env: { PORT: '0', ...env }, command: [process.execPath, ENTRY, ...words] });
  const status = await running.exited;
  return { status, stdout: running.stdout(), stderr: running.stderr() };
}

/** What `portico doctor` says: its lines without the sum, and the words of each subject's that are so. */
export async function doctor(env: Env = {}) {
  const { status, stdout, stderr } = await program(['doctor'], env);
  const [report = '', sum = ''] = stdout.split('\n\n');
  return { status, lines: report.split('\n'), sum, all: stdout + stderr };
}

/** Passes bytes on to a server of this machine and back. `change`: what comes back. */
export async function startLate(behind: number, ms: number, change = (chunk: Buffer): Buffer => chunk) {
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (from) => {
    const to = connect({ port: behind, host: '127.0.0.1', noDelay: true });
    for (const socket of [from, to]) open.add(socket.on('error', () => {}));
    from.on('data', (chunk) => void to.write(chunk));
    to.on('data', (chunk: Buffer) => void setTimeout(() => from.write(change(chunk)), ms));
    from.once('close', () => to.destroy());
    to.once('close', () => from.destroy());
  });
  const port = await listenLocally(server);
  return {
    port,
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
