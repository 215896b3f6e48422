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

/** Beyond this the older half is forgotten, so that a benchmark does not fill the memory. */
const MAX_CALLS = 10_000;

/** Oldest first. */
export class Calls {
  all: RecordedCall[] = [];

  begin(request: Request, operation: OperationId | null): RecordedCall {
    const { pathname, search } = new URL(request.url);
    const headers = Object.fromEntries(request.headers);
    if (headers['authorization']) headers['authorization'] = headers['authorization'].replace(/\S+$/, '***');
    const call = { operation, method: request.method, path: pathname + search, headers, account: null, status: null };
    if (this.all.length >= MAX_CALLS) this.all = this.all.slice(MAX_CALLS / 2);
    this.all.push(call);
    return call;
  }

  readonly clear = (): void => {
    this.all = [];
  };
}
