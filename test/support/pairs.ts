/** Names and values in turn, as a record. */
export const recordOf = (pairs: readonly string[]): Record<string, string> =>
  Object.fromEntries(Array.from({ length: pairs.length / 2 }, (_, n) => [pairs[2 * n]!, pairs[2 * n + 1]!]));
