import { openChromium } from './chromium.ts';

/** As the DevTools protocol has it. */
export interface StoredCookie {
  readonly name: string;
  readonly value: string;
  readonly domain: string;
  readonly path: string;
  readonly httpOnly: boolean;
  readonly secure: boolean;
  readonly session: boolean;
  readonly sameSite?: string;
}

export interface Tab {
  /** As somebody does who types the address: resolves when the page is loaded. */
  go(url: string): Promise<void>;
  /** Calls a function of the page, and resolves with what its promise does. */
  run<T = unknown>(name: string, ...args: readonly unknown[]): Promise<T>;
  /** Calls a function of the page that leaves it, and resolves with where it led to and the text there. */
  leave(name: string, ...args: readonly unknown[]): Promise<{ readonly url: string; readonly text: string }>;
  /** Of the page as it is seen. */
  text(): Promise<string>;
}

export interface Browser extends AsyncDisposable {
  open(url: string): Promise<Tab>;
  /** All that it keeps, of every site. */
  cookies(): Promise<readonly StoredCookie[]>;
}

/** A Chromium with an empty profile, whose tabs share what one user's do. */
export async function openBrowser(): Promise<Browser> {
  const { ended, pipes, ...chromium } = await openChromium('--remote-debugging-pipe', 'about:blank');
  const protocol = new Protocol(pipes);
  const send = <T>(...command: Parameters<Protocol['send']>) =>
    Promise.race([protocol.send(...command) as Promise<T>, ended]);
  return {
    async open(url) {
      const { targetId } = await send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
      const attach = { targetId, flatten: true };
      const { sessionId } = await send<{ sessionId: string }>('Target.attachToTarget', attach);
      const tab = tabOf({
        send: (method, params) => send(method, params, sessionId),
        loaded: () => Promise.race([protocol.next('Page.loadEventFired', sessionId), ended]),
      });
      await send('Page.enable', {}, sessionId);
      await tab.go(url);
      return tab;
    },
    async cookies() {
      const { cookies } = await send<{ cookies: StoredCookie[] }>('Storage.getCookies', {});
      return cookies;
    },
    [Symbol.asyncDispose]: () => chromium[Symbol.asyncDispose](),
  };
}

interface Attached {
  readonly send: <T>(method: string, params: object) => Promise<T>;
  readonly loaded: () => Promise<unknown>;
}

interface Evaluated {
  readonly result: { readonly value?: unknown };
  readonly exceptionDetails?: { readonly exception?: { readonly description?: string }; readonly text: string };
}

const called = (name: string, args: readonly unknown[]) =>
  `${name}(${args.map((one) => JSON.stringify(one)).join(', ')})`;

function tabOf({ send, loaded }: Attached): Tab {
  const evaluate = async (expression: string) => {
    const options = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails: failed } = await send<Evaluated>('Runtime.evaluate', options);
    if (failed) throw new Error(failed.exception?.description ?? failed.text);
    return result.value;
  };
  const text = async () => String(await evaluate('document.documentElement.innerText'));
  return {
    text,
    async go(url) {
      const after = loaded();
      const { errorText } = await send<{ errorText?: string }>('Page.navigate', { url });
      if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
      await after;
    },
    run: async <T>(name: string, ...args: readonly unknown[]) => (await evaluate(called(name, args))) as T,
    async leave(name, ...args) {
      const after = loaded();
      await evaluate(`void ${called(name, args)}`);
      await after;
      return { url: String(await evaluate('location.href')), text: await text() };
    },
  };
}

interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

type Watcher = (message: Message) => boolean;

/** The DevTools protocol over a pair of pipes: texts of JSON, each with a zero byte behind it. */
class Protocol {
  readonly #pipes: Awaited<ReturnType<typeof openChromium>>['pipes'];
  #sent = 0;
  /** Each is gone once it was told what it waits for. */
  #watchers: readonly Watcher[] = [];

  constructor(pipes: Awaited<ReturnType<typeof openChromium>>['pipes']) {
    this.#pipes = pipes;
    let rest = '';
    pipes.messages.setEncoding('utf8').on('data', (chunk: string) => {
      const texts = (rest + chunk).split('\0');
      rest = texts.pop() ?? '';
      for (const text of texts) this.#receive(JSON.parse(text) as Message);
    });
  }

  send(method: string, params: object, sessionId?: string): Promise<unknown> {
    const id = ++this.#sent;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#watch((message) => {
      if (message.id !== id) return false;
      if (message.error) reject(new Error(`${method}: ${message.error.message}`));
      else resolve(message.result);
      return true;
    });
    this.#pipes.commands.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return promise;
  }

  /** The next event of that name. */
  next(method: string, sessionId: string): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.#watch((message) => {
      const isIt = message.method === method && message.sessionId === sessionId;
      if (isIt) resolve(message);
      return isIt;
    });
    return promise;
  }

  #watch(watcher: Watcher): void {
    this.#watchers = [...this.#watchers, watcher];
  }

  #receive(message: Message): void {
    this.#watchers = this.#watchers.filter((watcher) => !watcher(message));
  }
}
