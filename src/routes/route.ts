import type { Context } from 'hono';
import { type Answer, reply } from '../middleware/reply.ts';
import type { ClientRequest, Env, RouteFacts } from '../middleware/request.ts';

/** A path and method of ours. */
export interface Route extends RouteFacts {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Hono's pattern, without a slash at its end. */
  readonly path: string;
  /** It takes a credential, which may come in a session's cookie. */
  readonly takesCredential?: true;
  readonly handle: (c: Context<Env>) => Response | Promise<Response>;
}

/** A GET whose path has no parameters. */
export const pageAt = (path: string, answerOf: (request: ClientRequest) => Promise<Answer>): Route => ({
  method: 'GET',
  path,
  name: path,
  isRead: true,
  handle: async (c) => reply(c, await answerOf(c.get('request'))),
});
