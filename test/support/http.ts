import { Agent, buildConnector, type Dispatcher } from 'undici';

export interface CallOptions {
  /** GET, or POST with a body. */
  readonly method?: string;
  /** Sent as it is, query included: nothing in it is normalized. */
  readonly path: string;
  /** Sent as `Authorization: Token …`. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** Text is sent as it is, any other value as JSON. */
  readonly body?: unknown;
  /** Aborting it leaves: the connection is closed. */
  readonly signal?: AbortSignal;
}

interface Answer {
  readonly status: number;
  /** Lowercased names; the values of a repeated one joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Each `Set-Cookie` by itself. */
  readonly cookies: readonly string[];
}

export interface TextAnswer extends Answer {
  readonly text: string;
  /** The text parsed, or undefined where it is not JSON. */
  readonly json: unknown;
}

export interface StreamAnswer extends Answer {
  /** The lines of the body, each as soon as it is there. */
  readonly lines: AsyncGenerator<string>;
}

// One for all calls, so that connections are kept alive and shared as those of a busy client are.
const agent = new Agent({ connections: 256 });

/** For clients that may leave. They do it by a reset: workerd hears of nothing else. */
const resetting = new Agent({
  connect: (options, connected) =>
    buildConnector({})(options, (...[error, socket]) => {
      if (error) return connected(error, null);
      const destroy = socket.destroy.bind(socket);
      socket.destroy = () => {
        socket.destroy = destroy;
        return 'resetAndDestroy' in socket ? socket.resetAndDestroy() : destroy();
      };
      connected(null, socket);
    }),
});

const bodyOf = (body: unknown) =>
  typeof body === 'string' || body instanceof Uint8Array || body === undefined ? body : JSON.stringify(body);

const headersOf = ({ token, headers, body }: CallOptions) => ({
  ...(token !== undefined && { authorization: `Token ${token}` }),
  ...(body !== undefined && { 'content-type': 'application/json' }),
  ...Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
});

const send = (baseUrl: string, options: CallOptions, by: Dispatcher): Promise<Dispatcher.ResponseData> => {
  const { path, body, signal, method = body === undefined ? 'GET' : 'POST' } = options;
  return by.request({
    origin: new URL(baseUrl).origin,
    path,
    method,
    headers: headersOf(options),
    body: bodyOf(body) ?? null,
    signal: signal ?? null,
  });
};

const answerOf = ({ statusCode, headers }: Dispatcher.ResponseData): Answer => {
  const entries = Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat()] as const);
  return {
    status: statusCode,
    headers: Object.fromEntries(entries.map(([name, values]) => [name, values.join(', ')])),
    cookies: entries.flatMap(([name, values]) => (name === 'set-cookie' ? values : [])),
  };
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** One request over a real connection, and the whole answer. `by`: its connections. */
export const call = async (
  baseUrl: string,
  options: CallOptions,
  by: Dispatcher = options.signal ? resetting : agent,
): Promise<TextAnswer> => {
  const response = await send(baseUrl, options, by);
  const text = await response.body.text();
  return { ...answerOf(response), text, json: parsed(text) };
};

/** Each as soon as it is there. */
export async function* linesIn(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** One request whose answer is read line by line, as it comes. */
export const stream = async (baseUrl: string, options: CallOptions): Promise<StreamAnswer> => {
  const response = await send(baseUrl, options, options.signal ? resetting : agent);
  return { ...answerOf(response), lines: linesIn(response.body.setEncoding('utf8')) };
};
