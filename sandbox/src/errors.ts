/** A refusal in one of the shapes that the upstream is seen to use; thrown by handlers, sent by `sandbox.ts`. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    super(`refused with ${status}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** The documented form of a validation error: `[{message, code}]`. */
export const refused = (message: string, code: string) => new Refusal(400, [{ message, code }]);

/** `{"field":[{message, code}]}` */
export const fieldRefused = (field: string, message: string, code: string) =>
  new Refusal(400, { [field]: [{ message, code }] });

/** `{"field":["text"]}`, the form of Django REST Framework itself. */
export const fieldRefusedAsText = (field: string, message: string) => new Refusal(400, { [field]: [message] });

/** A bare JSON string. */
export const refusedAsString = (message: string) => new Refusal(400, message);

/** `{"detail","code"}`, where the account or the credential is refused. */
export const forbidden = (detail: string, code: string) => new Refusal(403, { detail, code });

export const notFound = () => new Refusal(404, { detail: 'Not found.' });

export const invalidPage = () => new Refusal(404, { detail: 'Invalid page.' });

export const unauthenticated = (detail: string, code: string) =>
  new Refusal(401, { detail, code }, { 'WWW-Authenticate': 'Token' });

export const methodNotAllowed = (method: string, allowed: readonly string[]) =>
  new Refusal(405, { detail: `Method "${method}" not allowed.` }, { Allow: allowed.join(', ') });

export const NO_SUCH = 'there is none with this id';
