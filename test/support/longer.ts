const longer = (ms: number) => (ms > 100 && ms <= 1_000 ? 100 * ms : ms);

/** Limits of the store hold in workerd on a busy machine too. */
export function lengthenLimits(): void {
  const { setTimeout: after } = globalThis;
  Object.assign(globalThis, { setTimeout: (run: () => void, ms = 0) => after(run, longer(ms)) });
}
