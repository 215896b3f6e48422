import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { peer } from './peer.ts';

/** http-proxy-3 with connections that are kept. */
interface Proxy {
  web(request: IncomingMessage, response: ServerResponse): void;
}

interface HttpProxy {
  readonly createProxyServer: (options: { readonly target: string; readonly agent: Agent }) => Proxy;
}

const { createProxyServer } = peer('http-proxy-3') as HttpProxy;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const proxy = createProxyServer({ target: process.env['UPSTREAM'] ?? '', agent });

createServer((request, response) => proxy.web(request, response)).listen(Number(process.env['PORT']), '127.0.0.1');
