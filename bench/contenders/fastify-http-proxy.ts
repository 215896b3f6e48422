import { peer } from './peer.ts';

/** @fastify/http-proxy as its documentation shows it. */
interface Fastify {
  register(plugin: unknown, options: { readonly upstream: string }): void;
  listen(options: { readonly port: number; readonly host: string }): Promise<string>;
}

const fastify = peer('fastify') as () => Fastify;
const server = fastify();
server.register(peer('@fastify/http-proxy'), { upstream: process.env['UPSTREAM'] ?? '' });
await server.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' });
