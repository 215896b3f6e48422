/** Rules of the protocol that the simulated store and gateway keep, by the numbers of docs/store.md. Any can be left out. */
export const RULES = {
  compare: '1: a note is replaced only where the one that was seen still stands',
  keepCompares: '2: a copy is kept only where its note still stands',
  keepMakesNote: '2: who keeps a copy makes a note where there is none',
  readToken: '3: a read from another store than the one known is none',
  late: '10: what is late is not sent',
  helloFirst: '11: a connection says HELLO before all else',
  silence: '11: without an answer to HELLO for a while there is no store',
  refusal: '11: HELLO writes, so that a replica, or a primary without its replicas, refuses it',
  run: '12: another run id makes a new token',
  tokenGone: '12: a missing token makes a new one',
  elsewhere: '12: who comes from another store makes a new token',
  past: '12: tokens that went before are known',
  alone: '12: who comes without a token to a store that nobody has asked for a while makes a new one',
  sinceNow: '12: a new token is of now, also the first one',
  swapToken: '14: a swap compares the token',
  flights: '15: calls are joined under the same version only',
  laterCopy: '16: a copy is not kept in the place of one that was asked for later',
} as const;

export type Rule = keyof typeof RULES;

/**
 * Left out alone, these show nothing. In one process calls under the same version are joined, so none ends with a copy that
 * was asked for earlier than the one that is there.
 */
export const NEEDLESS = ['laterStays'] as const;

/**
 * Needed by reasoning; no schedule has shown these. The note that a refusal leaves lives longer than a whole schedule, so
 * what KEEP does about notes does not show.
 */
export const NOT_SHOWN = ['readToken', 'swapToken', 'laterCopy', 'keepMakesNote', 'keepCompares'] as const;

/** No schedule shows these; the loads of steady.ts do. */
export const UNDER_LOAD = ['queue', 'grantsCounted'] as const;
