import type { Fault } from './faults.ts';

export const isReached = ({ what }: Fault): boolean => typeof what === 'function';

/** How often a read asks, or tries to. */
const countOf = (fault: Fault) => {
  const tries = fault.isRetried ? 3 : 1;
  return isReached(fault) ? `×${tries}` : `×0 of ${tries}`;
};

const isGood = ({ read: [status] }: Fault) => status < 300;

/** Says something about the account or about what was asked for, so that nothing older is true any more. */
const isRefusal = ({ read: [status] }: Fault) => [401, 403, 404].includes(status);

const statusOf = ({ read }: Fault) => read.join(' ');

/** Cells of the matrix: what the client gets, and how often the upstream is called for it. */
export const EXPECTED = {
  read: (fault: Fault): string => `${statusOf(fault)} ${countOf(fault)}`,
  stale: (fault: Fault): string =>
    `${isGood(fault) || isRefusal(fault) ? statusOf(fault) : '200 older copy'} ${countOf(fault)}`,
  leg(fault: Fault): string {
    const [status, code] = fault.read;
    if (status === 401 || status === 403) return `${statusOf(fault)} ${countOf(fault)}`;
    // A read without a body is passed on as it came; a section without one is of no use.
    if (status === 204) return `200 null, upstream_bad_response ${countOf(fault)}`;
    if (code === undefined) return `200 complete ${countOf(fault)}`;
    return `200 null, ${code} ${countOf(fault)}`;
  },
  purchase(fault: Fault): string {
    const isUnknown = isReached(fault) && fault.read[0] >= 500;
    return `${statusOf(fault)}${isUnknown ? ', unknown' : ''} ${isReached(fault) ? '×1' : '×0 of 1'}`;
  },
};
