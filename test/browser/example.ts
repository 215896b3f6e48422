import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Example extends AsyncDisposable {
  readonly url: string;
}

/** `npm run example`, as somebody starts it who has a terminal, and ends it with Ctrl-C. */
export async function startExample(): Promise<Example> {
  // A group of its own, as a terminal's: npm, the script and all that it has started.
  const child = spawn('npm', ['run', 'example'], { env: { ...process.env, EXAMPLE_PORT: '0' }, detached: true });
  let isOver = false;
  const interrupt = () => {
    if (!isOver && child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
  };
  const closed = once(child, 'close'); // none of the group has its output open any more
  process.once('exit', interrupt);
  let said = '';
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  const hear = (text: string) => {
    said += text;
    const [, address] = /The page is at (http:\S+)/.exec(said) ?? [];
    if (address !== undefined) resolve(address);
  };
  child.stdout.setEncoding('utf8').on('data', hear);
  child.stderr.setEncoding('utf8').on('data', hear);
  const ended = closed.finally(() => (isOver = true));
  void ended.then(
    () => reject(new Error(`npm run example has ended.\n${said}`)),
    (error: Error) => reject(error),
  );
  return {
    url: await url,
    async [Symbol.asyncDispose]() {
      interrupt();
      await ended;
    },
  };
}
