import type { OperationId } from './operations.ts';

/** A call that the sandbox has received. */
export interface RecordedCall {
  readonly operation: OperationId | null;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Of the request; the credential is masked. */
  readonly headers: Readonly<Record<string, string>>;
  /** Name of the account that the credential belongs to. */
  account: string | null;
  /** `null` while it is under way, and for good when the connection was cut. */
  status: number | null;
}

export interface Calls {
  readonly begin: (request: Request, operation: OperationId | null) => RecordedCall;
  readonly all: () => readonly RecordedCall[];
  readonly clear: () => void;
}

/** Beyond this the older half is forgotten, so that a benchmark does not fill the memory. */
const MAX_CALLS = 10_000;

export function createCalls(): Calls {
  let calls: RecordedCall[] = [];
  return {
    begin: (request, operation) => {
      const { pathname, search } = new URL(request.url);
      const headers = maskedHeaders(request.headers);
      const call = { operation, method: request.method, path: pathname + search, headers, account: null, status: null };
      if (calls.length >= MAX_CALLS) calls = calls.slice(MAX_CALLS / 2);
      calls.push(call);
      return call;
    },
    all: () => calls,
    clear: () => void (calls = []),
  };
}

function maskedHeaders(headers: Headers): Record<string, string> {
  const masked = Object.fromEntries(headers);
  const authorization = masked['authorization'];
  if (authorization !== undefined) masked['authorization'] = authorization.replace(/^(\S+ )?.*$/s, '$1***');
  return masked;
}
