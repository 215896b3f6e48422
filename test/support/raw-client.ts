import { connect, type Socket } from 'node:net';
import { takeMessage, type Message } from './http-message.ts';

export interface RawResponse extends Pick<Message, 'headers' | 'rawHeaders'> {
  readonly status: number;
  readonly body: string;
}

export interface RawSocket {
  /** Resolves when the bytes have left; also when the peer has already gone. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** The next response, interim ones passed over. `head` when it answers a HEAD. Rejects if the peer leaves before. */
  readResponse(framing?: { readonly head?: boolean }): Promise<RawResponse>;
  /** All bytes read and not yet taken as a response. */
  unread(): string;
  /** Resolves when the peer (or `destroy`) has closed the connection. */
  readonly closed: Promise<void>;
  /** FIN: no more bytes will come from here. */
  end(): void;
  /** Leaves at once. */
  destroy(): void;
  /** Leaves with an RST. */
  reset(): void;
}

const responseOf = ({ startLine, headers, rawHeaders, body }: Message): RawResponse => {
  const status = /^HTTP\/1\.[01] (\d{3})( |$)/.exec(startLine)?.[1];
  if (status === undefined) throw new Error(`not a status line: ${JSON.stringify(startLine)}`);
  return { status: Number(status), headers, rawHeaders, body: body.toString() };
};

const isInterim = ({ status }: RawResponse) => status < 200 && status !== 101;

/** Bytes as they arrive, for readers that wait for more of them. */
class Inbox {
  bytes: Buffer = Buffer.alloc(0);
  ended = false;
  #wake = Promise.withResolvers<void>();

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
      this.#changed();
    });
    for (const event of ['end', 'close'] as const) {
      socket.on(event, () => {
        this.ended = true;
        this.#changed();
      });
    }
  }

  more(): Promise<void> {
    return this.#wake.promise;
  }

  #changed(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }
}

const nextResponse = async (inbox: Inbox, head: boolean): Promise<RawResponse> => {
  for (;;) {
    const { ended } = inbox;
    const taken = takeMessage(inbox.bytes, { kind: 'response', head, ended });
    if (taken) {
      const response = responseOf(taken[0]);
      inbox.bytes = taken[1];
      if (!isInterim(response)) return response;
      continue;
    }
    if (ended) throw new Error(`closed before a whole response; got ${JSON.stringify(inbox.bytes.toString())}`);
    await inbox.more();
  }
};

const connected = (port: number) =>
  new Promise<Socket>((resolve, reject) => {
    // Half-open, so that what the peer does after our FIN can be seen.
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });

/** A TCP connection that sends what it is given, whole requests or not. */
export const openSocket = async (port: number): Promise<RawSocket> => {
  const socket = await connected(port);
  const inbox = new Inbox(socket);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.on('error', () => {}); // 'close' follows.
  socket.once('close', () => resolve());
  socket.once('end', () => resolve());
  return {
    write: (bytes) => new Promise((sent) => void socket.write(bytes, () => sent())),
    readResponse: ({ head = false } = {}) => nextResponse(inbox, head),
    unread: () => inbox.bytes.toString(),
    closed,
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
    reset: () => void socket.resetAndDestroy(),
  };
};

/** Sends the bytes on a connection of their own and reads one response. */
export const rawRequest = async (port: number, bytes: string | Uint8Array): Promise<RawResponse> => {
  const socket = await openSocket(port);
  try {
    await socket.write(bytes);
    const head = Buffer.from(bytes).toString('latin1').startsWith('HEAD ');
    return await socket.readResponse({ head });
  } finally {
    socket.destroy();
  }
};

interface RawRequest {
  readonly method?: string;
  readonly target: string;
  /** `Host` is put before them where none of them is one. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
}

/** A request as text, with nothing put right; `Content-Length` comes with a body. */
export function requestText({ method = 'GET', target, headers = [], body }: RawRequest): string {
  const given = new Set(headers.map(([name]) => name.toLowerCase()));
  const all = [
    ...(given.has('host') ? [] : [['Host', 'gateway.example']]),
    ...headers,
    ...(body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body))]]),
  ];
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}
