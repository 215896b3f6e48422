import type { Handler } from '../http/conduct.ts';

/** One thing that a listener answers. `path` is Hono's pattern; `name` is what logs call it. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly name: string;
  /** Request headers that it reads, besides those that are read of every request. */
  readonly takes?: readonly string[];
  readonly handler: Handler;
}
