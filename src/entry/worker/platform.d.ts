/** What we use of Cloudflare's runtime (developers.cloudflare.com/durable-objects/api). */
declare module 'cloudflare:workers' {
  export type SqlValue = string | number | ArrayBuffer | null;

  interface SqlStorage {
    exec<Row extends Record<string, SqlValue>>(query: string, ...bindings: (SqlValue | Uint8Array)[]): SqlCursor<Row>;
  }

  interface SqlCursor<Row> {
    toArray(): Row[];
  }

  export interface DurableObjectStorage {
    readonly sql: SqlStorage;
    setAlarm(at: number): Promise<void>;
    deleteAll(): Promise<void>;
  }

  export interface DurableObjectState {
    readonly storage: DurableObjectStorage;
  }

  export abstract class DurableObject {
    protected readonly ctx: DurableObjectState;
    constructor(ctx: DurableObjectState, env: unknown);
    alarm?(): Promise<void>;
  }
}
