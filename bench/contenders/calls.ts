import { Pool } from 'undici';

/** What undici's dispatch gives, gathered, and no more. */
export interface Called {
  readonly status: number;
  readonly body: Buffer;
}

export interface Call {
  readonly method: string;
  readonly path: string;
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  readonly body?: Buffer;
}

const CONNECTIONS = 64;
const pool = new Pool(process.env['UPSTREAM'] ?? '', { connections: CONNECTIONS, pipelining: 1 });

export function call({ method, path, headers, body }: Call): Promise<Called> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    const wanted = { method: method as 'GET' | 'POST', path, headers: [...headers], body: body ?? null };
    pool.dispatch(wanted, {
      onRequestStart() {},
      onResponseStart(_, given) {
        status = given;
      },
      onResponseData(_, chunk) {
        chunks.push(chunk);
      },
      onResponseEnd() {
        const [first] = chunks;
        resolve({ status, body: first && chunks.length === 1 ? first : Buffer.concat(chunks) });
      },
      onResponseError: (_, error) => reject(error),
    });
  });
}

/** Of an answer that is kept nowhere. */
export const UNKEPT = [
  ['RateLimit', '"account";r=999999999;t=41'],
  ['Cache-Status', 'portico; fwd=bypass'],
  ['Cache-Control', 'no-store'],
].flat();
