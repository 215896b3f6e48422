/** As in `@cloudflare/workers-types`: the module has the class only, what it is given is global. */
declare module 'cloudflare:workers' {
  export abstract class DurableObject<Env = unknown> {
    protected ctx: DurableObjectState;
    protected env: Env;
    constructor(ctx: DurableObjectState, env: Env);
    alarm?(): void | Promise<void>;
  }
}

interface DurableObjectState {
  readonly id: object;
  readonly storage: object;
}
