/** Milliseconds. How long the upstream may take, and may carry out a write without an answer after that. */
export const REQUEST_MS = 4_000;
export const LATE_MS = 6_000;
/** Rule 13: for so long a store that is new is not relied on. */
export const WINDOW_MS = REQUEST_MS + 5_000;
/** Rule 11. */
export const HELLO_MS = 1_000;
export const SILENCE_MS = 2_500;
/** A connection that owes a reply for so long is given up. */
export const MAX_OWED_MS = 2_000;
/** What `down-after-milliseconds` is for: no other primary is promoted sooner. And `min-replicas-max-lag`, with the second in which it is found. */
export const DOWN_AFTER_MS = 5_000;
export const MAX_LAG_MS = 3_000;
/** How much longer a note lives than a copy: a copy may be kept so long after it was asked for. */
export const NOTE_OUTLIVES_COPY_MS = 10_000;
/** A schedule, the part of it with load and faults, and the quiet part after it. */
export const LOAD_MS = 51_000;
export const END_MS = 85_000;
