/** A refusal in one of the shapes that the upstream is seen to use; thrown by handlers, sent by `mount.ts`. */
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

/** `{"detail","code"}`, where the account or the credential is refused. */
export const forbidden = (detail: string, code: string) => new Refusal(403, { detail, code });

export const notFound = (detail = 'Not found.') => new Refusal(404, { detail });

export const NO_SUCH = 'there is none with this id';
