import type { Handler } from '../http/conduct.ts';

/** One thing that a listener answers. `path` is Hono's pattern; `name` is what logs call it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly name: string;
  readonly handler: Handler;
}
