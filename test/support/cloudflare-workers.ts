/** In place of the module that workerd has, by `vitest.config.ts`. */
export abstract class DurableObject {
  protected readonly ctx: unknown;

  constructor(ctx: unknown) {
    this.ctx = ctx;
  }
}
