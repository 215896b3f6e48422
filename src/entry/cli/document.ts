import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** An app is anything that answers as a Hono app does; that has its routes too. */
interface Module {
  readonly default?: {
    fetch?(request: Request, env: object, execution: object): Response | Promise<Response>;
    readonly routes?: readonly { readonly path: string }[];
  };
}

/** For a file that serves what it exports: on a free port, without a store, and nothing on stdout. */
const QUIET = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent', STORE_URL: '' };

/** What a worker's file imports; it is there on the platform only. */
const OF_WORKERS = 'data:text/javascript,export class DurableObject {}; export const env = {};';

const execution = { waitUntil() {}, passThroughOnException() {}, props: {} };

/**
 * The OpenAPI document of the app that a file exports as default, as the app answers it at `path`; unless given, where its
 * routes say that the document is.
 * @throws Error in words if the file exports no app, or the app has no document
 */
export async function documentOf(file: string, path?: string): Promise<string> {
  const { UPSTREAM_BASE_URL = 'http://upstream.invalid' } = process.env;
  Object.assign(process.env, QUIET, { UPSTREAM_BASE_URL });
  registerHooks({
    resolve: (name, context, next) =>
      name === 'cloudflare:workers' ? { url: OF_WORKERS, shortCircuit: true } : next(name, context),
  });
  const { default: app } = (await import(pathToFileURL(resolve(file)).href)) as Module;
  if (typeof app?.fetch !== 'function') throw new Error(`${file} exports no app as default, such as a Hono app`);
  const at = path ?? app.routes?.find((route) => route.path.endsWith('/openapi.json'))?.path ?? '/openapi.json';
  const answer = await app.fetch(new Request(new URL(at, 'http://portico.invalid')), process.env, execution);
  const text = await answer.text();
  if (answer.status !== 200 || !text.includes('"openapi"'))
    throw new Error(`the app of ${file} has no OpenAPI document at ${at} (${answer.status}); --path says where it is`);
  return text;
}
