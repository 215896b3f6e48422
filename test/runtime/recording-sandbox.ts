import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createSandbox } from '../../sandbox/src/sandbox.ts';
import { type Barrier, barrier } from '../support/barrier.ts';

/** Summer in California. The sandbox's clock stands still, so that equal requests have equal answers. */
const NOW = Date.parse('2026-06-09T18:50:08.101Z');

/** An answer as the sandbox sent it. */
interface Sent {
  readonly operation: string;
  readonly status: number;
  readonly text: string;
}

export interface RecordingSandbox {
  readonly url: string;
  /** What was sent to requests with this `X-Request-Id`, oldest first. */
  sentTo(requestId: string): readonly Sent[];
  /** Resolves when whoever sent the request with this `X-Request-Id` leaves without having had its answer. */
  left(requestId: string): Promise<void>;
  /** The next call that a fault delays stops at this barrier. */
  delayAt(): Barrier;
  close(): Promise<void>;
}

interface Connection {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** The sandbox upstream on a socket of its own, which keeps what it sent, and delays until it is told to go on. */
export async function startRecordingSandbox(): Promise<RecordingSandbox> {
  let gate = barrier();
  const sent = new Map<string, Sent[]>();
  const leaving = new Map<string, PromiseWithResolvers<void>>();
  const leavingOf = (id: string) => leaving.get(id) ?? leaving.set(id, Promise.withResolvers()).get(id)!;
  const sandbox = createSandbox({
    now: () => NOW,
    sleep: () => gate.arrive(),
    cutConnection: (env) => (env as Connection).incoming.socket.destroy(),
  });

  const serve = async (request: Request, env: Connection) => {
    const id = request.headers.get('X-Request-Id') ?? '';
    env.outgoing.once('close', () => {
      if (!env.outgoing.writableFinished) leavingOf(id).resolve();
    });
    const response = await sandbox.app.fetch(request, env);
    const operation = response.headers.get('X-Sandbox-Operation') ?? '';
    sent.set(id, [...(sent.get(id) ?? []), { operation, status: response.status, text: await textOf(response) }]);
    return response;
  };

  const server = createAdaptorServer({
    fetch: (request, env) => serve(request, env as unknown as Connection),
    overrideGlobalObjects: false,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    sentTo: (id) => sent.get(id) ?? [],
    left: (id) => leavingOf(id).promise,
    delayAt: () => (gate = barrier()),
    async close() {
      gate.release();
      const closed = once(server, 'close');
      server.close();
      if ('closeAllConnections' in server) server.closeAllConnections();
      await closed;
    },
  };
}

const textOf = (response: Response) => response.clone().text();
