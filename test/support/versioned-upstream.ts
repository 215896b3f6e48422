import type { OperationId } from './account-api.ts';
import { exampleRequest } from './examples.ts';
import { bodyOf as markedBody, idOf, tokenOf } from './marked.ts';
import {
  type Barrier,
  barrier,
  type Call,
  hold,
  json,
  perCall,
  reply,
  type ScriptedUpstream,
  type Step,
} from './scripted-upstream.ts';
import { cardLast4, email, secret } from './secrets.ts';

const CLIENT_SECRET = secret('client');
const EMAIL = email();
const RECAPTCHA = secret('recaptcha');
const PLACE = '<VERSION>';

/** Made once: there are ten thousands of calls. */
const remembered = <T>(make: (id: OperationId) => T): ((id: OperationId) => T) => {
  const known = new Map<OperationId, T>();
  return (id) => {
    const made = known.get(id) ?? make(id);
    known.set(id, made);
    return made;
  };
};

const templateOf = remembered((id) =>
  markedBody(id, PLACE)
    .replaceAll('<CLIENT_SECRET>', CLIENT_SECRET)
    .replaceAll('<EMAIL>', EMAIL)
    .replaceAll('"4242"', JSON.stringify(cardLast4)),
);

/** The example answer with the version in it, and with secrets where the upstream has some. */
export const bodyOf = (id: OperationId, version: number): string =>
  templateOf(id).replace(JSON.stringify(PLACE), String(version));

/** The example request, with a secret in it where it has one. */
export const requestOf = remembered((id) => {
  const request = exampleRequest(id);
  if (id !== 'purchasePlan') return request;
  return {
    ...request,
    body: JSON.stringify({ ...(JSON.parse(request.body ?? '{}') as object), recaptcha: RECAPTCHA }),
  };
});

export const isOf = (token: string, call: Pick<Call, 'headers'>): boolean => tokenOf(call) === token;

const goodAnswer = (to: Call, version: number): Step => {
  const text = bodyOf(idOf(to), version);
  const good = to.method === 'POST' ? 201 : 200;
  return json(text === '' ? 204 : good, text);
};

/** What an upstream was charged for: by key, by account, or both. */
interface Charge {
  readonly key?: string;
  readonly token?: string;
}

/** An upstream which keeps a version of each account's state: its good writes raise it, every answer carries it. */
export class VersionedUpstream {
  readonly upstream: ScriptedUpstream;
  readonly #versions = new Map<string, number>();

  constructor(upstream: ScriptedUpstream) {
    this.upstream = upstream;
    upstream.on(({ headers }) => 'authorization' in headers, this.answer());
  }

  versionOf(token: string): number {
    return this.#versions.get(token) ?? 1;
  }

  /** The account is changed, and nobody tells the gateway. */
  change(token: string): void {
    this.#versions.set(token, this.versionOf(token) + 1);
  }

  /** Answers the call with what is true now; a write is carried out now. */
  answer(): Step {
    return perCall((to) => {
      const token = tokenOf(to);
      if (to.method !== 'GET') this.change(token);
      return goodAnswer(to, this.versionOf(token));
    });
  }

  /** What is true at that version, whenever it is told. */
  answerOf(version: number): Step {
    return perCall((to) => goodAnswer(to, version));
  }

  /** The next call of an operation stops at the barrier: a read with its answer ready, a write before it is done. */
  holdNext(token: string, id: OperationId): Barrier {
    const at = barrier();
    const isRead = requestOf(id).method === 'GET';
    const step = isRead ? this.answerOf(this.versionOf(token)) : this.answer();
    this.upstream.once((to) => isOf(token, to) && idOf(to) === id, reply(hold(at), step));
    return at;
  }

  callsOf(token: string, id?: OperationId): readonly Call[] {
    return this.upstream.callsTo((to) => isOf(token, to) && (id === undefined || idOf(to) === id));
  }

  /** How often this key, or this account, was charged. */
  charges({ key, token }: Charge): number {
    const isMeant = (to: Call) =>
      idOf(to) === 'purchasePlan' &&
      (key === undefined || to.headers['idempotency-key'] === key) &&
      (token === undefined || isOf(token, to));
    return this.upstream.callsTo(isMeant).length;
  }
}
