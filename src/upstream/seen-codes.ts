import { GatewayError, isErrorCode } from '../core/errors.ts';
import type { Gate } from '../resilience/gates.ts';

/** An upstream has some dozens. */
const MAX_CODES = 1_000;

/** Error codes of the upstream's own that this instance has seen in its answers. */
export interface SeenCodes extends Gate {
  has(code: string): boolean;
  all(): string[];
}

export function seenCodes(): SeenCodes {
  const codes = new Set<string>();
  return {
    has: (code) => codes.has(code),
    all: () => [...codes],
    settled(_, { error }) {
      const isNew = error instanceof GatewayError && !isErrorCode(error.code) && codes.size < MAX_CODES;
      if (isNew) codes.add(error.code);
    },
  };
}
