import { linkOf, type Overview } from '../../src/gateway/sections.ts';
import { type OperationId, allOverviews } from '../support/account-api.ts';
import { exampleBody } from '../support/examples.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { barrier, hold, json, reply, type Step } from '../support/scripted-upstream.ts';
import { openWorld, type World } from '../support/world.ts';

export interface OverviewBody {
  readonly data: Readonly<Record<string, unknown>>;
  readonly errors: readonly Readonly<Record<string, unknown>>[];
  readonly meta: {
    readonly complete: boolean;
    readonly sections: Readonly<Record<string, { readonly state: string; readonly age?: number }>>;
  };
}

interface OverviewAnswer extends TextAnswer {
  readonly body: OverviewBody;
}

/** A section and the upstream call behind it, when all goes as it should. */
export interface LegScript {
  readonly section: string;
  readonly operation: OperationId;
  /** Path and query of the pass-through read that is the same as the leg. */
  readonly path: string;
  /** What the upstream answers. */
  readonly upstream: string;
  /** What the section is then. */
  readonly text: string;
  readonly required: boolean;
  /** What the upstream answers is a list, and the section one card of it. */
  readonly isCard: boolean;
}

export const CARD_LIST = '/api/v2/payment/method/';
export const SUBSCRIPTION = '/api/v2/subscription/';
export const CARD = `${CARD_LIST}1071/`;

/** For `describe.each`. */
export const overviewTable = allOverviews.map((overview) => [overview.path, overview] as const);

export const legsOf = ({ sections }: Overview): readonly LegScript[] =>
  Object.entries(sections).map(([name, section]) => {
    if (linkOf(section)) {
      const operation = 'listPaymentMethods';
      const texts = { upstream: exampleBody(operation), text: exampleBody('getPaymentMethod') };
      return { section: name, operation, path: CARD_LIST, ...texts, required: false, isCard: true };
    }
    const { path, id } = section.read;
    const operation = id as OperationId; // the table's rows are named by its keys
    const text = exampleBody(operation);
    const query = new URLSearchParams(section.query as Record<string, string>).toString();
    const target = query === '' ? path : `${path}?${query}`;
    const required = section.required === true;
    return { section: name, operation, path: target, upstream: text, text, required, isCard: false };
  });

export const legOf = (overview: Overview, section: string): LegScript => {
  const leg = legsOf(overview).find((candidate) => candidate.section === section);
  if (!leg) throw new Error(`no section ${section}`);
  return leg;
};

/** Those of the table with a card among their sections. */
export const withCard = overviewTable.filter(([, overview]) => legsOf(overview).some(({ isCard }) => isCard));

export const optionalOf = (overview: Overview) => legsOf(overview).filter(({ required }) => !required);

/** The text of `data` when all goes as it should. */
export const dataText = (legs: readonly LegScript[]) =>
  `{${legs.map(({ section, text }) => `${JSON.stringify(section)}:${text}`).join(',')}}`;

/** What `meta` is when the upstream was asked and all went as it should. */
export const freshMeta = (legs: readonly LegScript[]) => ({
  complete: true,
  sections: Object.fromEntries(legs.map(({ section }) => [section, { state: 'fresh', age: 0 }])),
});

/** The same cache policy for every leg of every overview, as `CACHE_POLICY` takes it. */
export const policyEnv = (policy: { fresh: number; stale: number; on_error: number }) => {
  const ids = ['getPaymentMethod', ...allOverviews.flatMap((overview) => legsOf(overview).map((leg) => leg.operation))];
  return { CACHE_POLICY: JSON.stringify(Object.fromEntries(ids.map((id) => [id, policy]))) };
};

/** Every read asks the upstream, and a copy is kept for its failure alone. */
export const ONLY_ON_ERROR = policyEnv({ fresh: 0, stale: 0, on_error: 3600 });

export interface OverviewWorld extends World {
  /** A GET with the token of this test. */
  readonly get: (path: string, options?: Partial<CallOptions>) => Promise<OverviewAnswer>;
  /** A leg answers this from now on: the card's in the list and by its id. */
  readonly on: (leg: Pick<LegScript, 'path'> & Partial<LegScript>, ...steps: Step[]) => void;
}

/** A world whose upstream answers all legs of the overviews. */
export const openOverviews = async (...args: Parameters<typeof openWorld>): Promise<OverviewWorld> => {
  const world = await openWorld(...args);
  const on: OverviewWorld['on'] = ({ path, isCard }, ...steps) => {
    for (const at of isCard ? [path, CARD] : [path]) world.upstream.on(`GET ${at}`, ...steps);
  };
  for (const { path, upstream } of allOverviews.flatMap(legsOf)) on({ path }, json(200, upstream));
  const get = async (path: string, given: Partial<CallOptions> = {}) => {
    const answer = await world.call({ path, token: world.token, ...given });
    return { ...answer, body: answer.json as OverviewBody };
  };
  return { ...world, get, on };
};

/** Holds every one of these legs at one barrier. */
export const holdAll = (world: OverviewWorld, legs: readonly LegScript[]) => {
  const gate = barrier();
  for (const leg of legs) world.on(leg, reply(hold(gate), json(200, leg.upstream)));
  return gate;
};

/** Resolves when the gateway has these answers: a pass-through read is served by the same call, or by what it left. */
export const landed = async ({ get }: OverviewWorld, legs: readonly LegScript[]) => {
  await Promise.all(legs.map(({ path }) => get(path)));
};

/** A subscription whose `payment_method` is this text. */
export const subscriptionWith = (card: string) =>
  exampleBody('getSubscription').replace('"payment_method":1071,', () => `"payment_method":${card},`);

export const cardText = (id: string) => exampleBody('getPaymentMethod').replace('"id":1071,', () => `"id":${id},`);

export const listOf = (...cards: string[]) =>
  `{"count":${cards.length},"next":null,"previous":null,"results":[${cards.join(',')}]}`;

export const byId = (id: string) => ({ path: `${CARD_LIST}${id}/` });

export const callsTo = ({ upstream }: OverviewWorld, { path }: { path: string }) =>
  upstream.callsTo(`GET ${path}`).length;

const allLegs = allOverviews.flatMap(legsOf);

const anyOf = (legs: readonly LegScript[]) => `"(?:${legs.map(({ section }) => section).join('|')})":`;

const CARD_IN = new RegExp(
  `${anyOf(allLegs.filter(({ isCard }) => isCard))}(\\{"id".*?\\})(?:,${anyOf(allLegs)}|\\},"errors":)`,
);

/** The text of the card in an overview, as it stands there: up to the next section, or to the last. */
export const cardIn = (text: string) => CARD_IN.exec(text)?.[1];
