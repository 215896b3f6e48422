import { type Answer, type Asked, createAsking } from './asking.ts';
import type { Portico } from './client.ts';
import type { Retry } from './send.ts';
import { createTurns } from './turns.ts';
import type { CallOptions, OverviewId, OverviewInput, OverviewOf, PlainOverviewId } from './types.ts';

/** `getAccountOverview`, or `account-overview`. */
type NameOf<Id> = Id | (Id extends `get${infer Words}` ? Dashed<Uncapitalize<Words>> : never);
type Dashed<Words> = Words extends `${infer One}${infer Rest}`
  ? `${One extends Lowercase<One> ? One : `-${Lowercase<One>}`}${Dashed<Rest>}`
  : '';
type IdOf<Name> = { [Id in OverviewId]: Name extends NameOf<Id> ? Id : never }[OverviewId];

/** Beside what is wanted of the overview. */
export interface WatchOptions<Id extends OverviewId> extends Omit<CallOptions, 'fresh' | 'idempotencyKey'> {
  /** How many entries a section has that is a page. */
  readonly pageSize?: OverviewInput<Id>['page_size'];
  /** Hears of each pause before another try. Unless given, that of the client does. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
}

type Input<Id extends OverviewId> = OverviewInput<Id> & WatchOptions<Id>;

/**
 * An overview as it changes: its first value at once, and each that comes after it. Waits at the gateway for changes, and gets
 * the sections that have changed; asks now and then where nobody can wait. Ends with its signal, `return()`, or a problem that
 * will not pass. Sections that have not changed are the same objects as before: leave them as they are.
 */
export function watchOverview<const Name extends NameOf<OverviewId>, const Asked extends Input<IdOf<Name>>>(
  portico: Portico,
  name: Name,
  options: Asked,
): AsyncGenerator<OverviewOf<IdOf<Name>, Asked>, void, undefined>;
export function watchOverview<
  const Name extends NameOf<PlainOverviewId>,
  const Asked extends Input<IdOf<Name>> = object,
>(portico: Portico, name: Name, options?: Asked): AsyncGenerator<OverviewOf<IdOf<Name>, Asked>, void, undefined>;
export function watchOverview(
  portico: Portico,
  name: string,
  options: Asked = {},
): AsyncGenerator<unknown, void, undefined> {
  const turns = createTurns(portico.globals, options.signal);
  const values = watch(createAsking(portico, idOf(portico, name), options, turns.interrupt), turns);
  const end = values.return.bind(values);
  values.return = () => {
    turns.end(); // else it would go on until there is another value
    return end();
  };
  return values;
}

const idOf = ({ routes }: Portico, name: string) =>
  (name in routes
    ? name
    : `get${name.replace(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`) as OverviewId;

async function* watch(
  ask: ReturnType<typeof createAsking>,
  turns: ReturnType<typeof createTurns>,
): AsyncGenerator<Answer, void, undefined> {
  for (;;) {
    const value = await turns.take(ask);
    if (turns.isOver()) return;
    if (value) yield value;
  }
}
