const SAME_TROUBLE_MS = 60_000;

/** Tells of the same trouble at most once a minute. */
export function sparing(tell: (trouble: string) => void): (trouble: string) => void {
  const last = new Map<string, number>();
  return (trouble) => {
    if (performance.now() - (last.get(trouble) ?? -Infinity) < SAME_TROUBLE_MS) return;
    last.set(trouble, performance.now());
    tell(trouble);
  };
}
