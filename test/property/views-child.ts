import { type Instance, LocalInstance, type Upstream } from './views-instance.ts';
import type { Called, Opened, Returned } from './views-process.ts';

/** An instance in a process of its own, which can be stopped as a whole. What it reads and writes is with its parent. */
const waiting = new Map<number, (value: unknown) => void>();
let calls = 0;

const send = (message: Called | Returned) => void process.send?.(message);

const ask = (name: keyof Upstream, args: readonly unknown[]) =>
  new Promise<unknown>((resolve) => {
    const id = ++calls;
    waiting.set(id, resolve);
    send({ id, name, args });
  });

const upstream = {
  fetch: (...args: Parameters<Upstream['fetch']>) => ask('fetch', args),
  write: (...args: Parameters<Upstream['write']>) => ask('write', args),
} as Upstream;

const going = () => Promise.resolve();
let instance: LocalInstance | undefined;

async function run({ name, args }: Called): Promise<unknown> {
  if (name !== 'open' && instance) {
    const call = instance[name as keyof Instance].bind(instance) as (...given: readonly unknown[]) => Promise<unknown>;
    return call(...args);
  }
  const [options] = args as [Opened];
  instance = await LocalInstance.open({ ...options, upstream, rate: 1, going, waits: () => true });
  return undefined;
}

process.on('message', (message: Called | Returned) => {
  if ('value' in message) {
    waiting.get(message.id)?.(message.value);
    waiting.delete(message.id);
    return;
  }
  void run(message).then((value = null) => send({ id: message.id, value }));
});
process.once('disconnect', () => process.exit());
