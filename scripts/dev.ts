import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, watch } from 'node:fs';

const ENTRY = 'src/entry/node.ts';
const SETTLE_MS = 100;

/**
 * Starts the gateway again on every change. It watches folders: `node --watch` follows files, and loses those that an
 * editor or git replaces instead of writing into.
 */
function dev(): void {
  let child = start();
  let timer: NodeJS.Timeout | undefined;
  const restart = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      console.log('— changed, starting again');
      stop(child, () => (child = start()));
    }, SETTLE_MS);
  };
  for (const folder of [...foldersIn('src'), ...foldersIn('sandbox/src')]) watch(folder, restart);
  watch('.', (_, name) => name === '.env' && restart());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop(child, () => process.exit(0)));
}

const start = () => spawn(process.execPath, [ENTRY], { stdio: 'inherit' });

function stop(child: ChildProcess, then: () => void): void {
  if (child.exitCode !== null || child.signalCode !== null) return then();
  child.once('exit', then);
  child.kill('SIGTERM');
}

function foldersIn(folder: string): string[] {
  const inside = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [folder, ...inside.flatMap(({ name }) => foldersIn(`${folder}/${name}`))];
}

dev();
