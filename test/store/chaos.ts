import type { Remote } from '../../src/store/shared/remote.ts';

type Verb = Exclude<keyof Remote, 'state' | 'isWhole'>;
type State = 'well' | 'refusing' | 'hanging' | 'deaf';

/** An engine between it and whom trouble can come, and what it was asked. */
export interface Chaos {
  readonly remote: Remote;
  /** What has reached the engine since the last look, in its order: `verb account`. */
  heard(): readonly string[];
  /** Rejects at once. */
  refuse(...verbs: Verb[]): void;
  /** Says nothing until it recovers; then does what it was asked. */
  hang(...verbs: Verb[]): void;
  /** Does what it is asked, and its reply is lost. */
  loseReplies(...verbs: Verb[]): void;
  recover(): void;
  /** How many hang. */
  hanging(): number;
  /** Those that hang are lost, and never done. */
  lose(): void;
}

/** With no verbs named, trouble is for all of them. */
export function chaosOn(engine: Remote): Chaos {
  let state: State = 'well';
  let troubled: readonly Verb[] = [];
  const heard: string[] = [];
  const waiting: PromiseWithResolvers<void>[] = [];

  const begin = (next: State) => (verbs: readonly Verb[]) => {
    state = next;
    troubled = verbs;
  };

  const wait = () => {
    const one = Promise.withResolvers<void>();
    waiting.push(one);
    return one.promise;
  };

  const ask = async (verb: Verb, account: string, act: () => Promise<unknown>) => {
    const trouble = troubled.length === 0 || troubled.includes(verb) ? state : 'well';
    if (trouble === 'refusing') throw new Error('refused');
    if (trouble === 'hanging') await wait();
    heard.push(`${verb} ${account}`);
    const reply = await act();
    if (trouble === 'deaf') throw new Error('the reply is lost');
    return reply;
  };

  const remote = new Proxy(engine, {
    get: (target, verb: Verb | 'state' | 'isWhole') =>
      verb === 'state' || verb === 'isWhole'
        ? undefined // as of an engine that does not know
        : (account: string, ...rest: unknown[]) =>
            ask(verb, account, () => Reflect.apply(target[verb], target, [account, ...rest]) as Promise<unknown>),
  });

  return {
    remote,
    heard: () => heard.splice(0),
    refuse: (...verbs) => begin('refusing')(verbs),
    hang: (...verbs) => begin('hanging')(verbs),
    loseReplies: (...verbs) => begin('deaf')(verbs),
    recover() {
      begin('well')([]);
      for (const { resolve } of waiting.splice(0)) resolve();
    },
    hanging: () => waiting.length,
    lose() {
      for (const { reject } of waiting.splice(0)) reject(new Error('lost'));
    },
  };
}
